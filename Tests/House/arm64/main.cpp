// Runs the C++ tests without XCTest, which needs a Swift for the target. An argument is the start of a
// Suite.TestName; tests that it fits are left out, named and counted.
#include <algorithm>
#include <cstdio>
#include <string>

#include "CoreTests.h"

int main(int argumentCount, char** arguments) {
  size_t ran = 0, failed = 0, leftOut = 0;
  for (size_t i = 0; i < core_test_count(); ++i) {
    const std::string name = std::string(core_test_suite(i)) + "." + core_test_name(i);
    const auto fits = [&](const char* start) { return name.starts_with(start); };
    if (std::any_of(arguments + 1, arguments + argumentCount, fits)) {
      std::printf("left out: %s\n", name.c_str());
      leftOut += 1;
      continue;
    }
    ran += 1;
    if (const char* failures = core_test_run(i)) {
      failed += 1;
      std::printf("FAILED %s\n%s\n", name.c_str(), failures);
    }
    std::fflush(stdout);
  }
  std::printf("arm64: %zu C++ tests ran, %zu failed, %zu left out\n", ran, failed, leftOut);
  return ran > 0 && failed == 0 ? 0 : 1;
}
