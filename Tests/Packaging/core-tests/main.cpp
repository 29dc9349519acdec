// The C++ tests as a program, for targets and sanitizers without Swift.
#include "CoreTests.h"

int main(int argumentCount, char** arguments) {
  return core_test_program(argumentCount, arguments);
}
