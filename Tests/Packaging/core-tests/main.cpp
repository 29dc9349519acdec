// The C++ tests as a program, where there is no Swift for the target or for its sanitizer.
#include "CoreTests.h"

int main(int argumentCount, char** arguments) {
  return core_test_program(argumentCount, arguments);
}
