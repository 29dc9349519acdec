// Prints violations that no test took when the program ends, and makes the program fail. So a program that does not
// know about the software Metal, such as one of Swift tests, is validated as well.
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

// What the report needs is created before the registration, and so outlives it.
[[maybe_unused]] const int registered = (takeViolations(), std::atexit(reportAtExit));

}  // namespace

}  // namespace softmetal
