// Violations that nobody took when the program ends: they are printed, and the program fails. So a program that knows
// nothing of the software Metal, such as one of Swift tests, is validated as well.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "SoftMetal.hpp"

namespace softmetal {

namespace {

void reportAtExit() {
  const auto violations = takeViolations();
  if (violations.empty()) return;
  for (const std::string& violation : violations) std::fprintf(stderr, "software Metal: %s\n", violation.c_str());
  std::fflush(nullptr);
  _exit(70);
}

// What the report needs exists before it is registered, and so outlives it.
[[maybe_unused]] const int registered = (takeViolations(), std::atexit(reportAtExit));

}  // namespace

}  // namespace softmetal
