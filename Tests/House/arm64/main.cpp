// Runs the C++ tests whose suite starts with one of the arguments, without XCTest, which needs a Swift for the
// target. A suite given as -Name is left out, counted and named.
#include <cstdio>
#include <string_view>

#include "CoreTests.h"

namespace {

bool startsWithAny(std::string_view suite, int count, char** prefixes) {
  for (int i = 1; i < count; ++i) {
    if (suite.starts_with(prefixes[i])) return true;
  }
  return false;
}

bool isLeftOut(std::string_view suite, int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    if (arguments[i][0] == '-' && suite == arguments[i] + 1) return true;
  }
  return false;
}

}  // namespace

int main(int argumentCount, char** arguments) {
  size_t ran = 0, failed = 0, leftOut = 0;
  for (size_t i = 0; i < core_test_count(); ++i) {
    const char* suite = core_test_suite(i);
    if (isLeftOut(suite, argumentCount, arguments)) {
      std::printf("left out: %s.%s\n", suite, core_test_name(i));
      leftOut += 1;
      continue;
    }
    if (!startsWithAny(suite, argumentCount, arguments)) continue;
    ran += 1;
    if (const char* failures = core_test_run(i)) {
      failed += 1;
      std::printf("FAILED %s.%s\n%s\n", suite, core_test_name(i), failures);
    }
    std::fflush(stdout);
  }
  std::printf("arm64: %zu C++ tests ran, %zu failed, %zu left out\n", ran, failed, leftOut);
  return ran > 0 && failed == 0 ? 0 : 1;
}
