// Runs the C++ tests from a command line, see CoreTests.h.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "Cache/KilledSave.hpp"
#include "CoreTests.h"
#include "MLXNativeKernelsHost/MLXNativeKernelsHost.h"

namespace {

bool fitsOne(const std::string& name, const std::vector<std::string_view>& starts) {
  return std::any_of(starts.begin(), starts.end(), [&](std::string_view start) { return name.starts_with(start); });
}

// The CPU time of this process and of the compilers it started, which other programs on the machine do not affect.
double processorSeconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    getrusage(who, &used);
    for (const timeval& time : {used.ru_utime, used.ru_stime}) {
      seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    }
  }
  return seconds;
}

}  // namespace

int core_test_program(int argumentCount, char** arguments) {
  mnk_register_host_device();
  core_test_choose_device();
  std::vector<std::string_view> only, without;
  size_t part = 1, parts = 1, slowest = 0;
  for (int i = 2; i + 1 < argumentCount; i += 2) {
    const std::string_view option = arguments[i];
    if (option == "--only") {
      only.push_back(arguments[i + 1]);
    } else if (option == "--without") {
      without.push_back(arguments[i + 1]);
    } else if (option == "--save-until-killed") {
      mnk::test::saveUntilKilled(arguments[i + 1]);
    } else if (option == "--slowest") {
      slowest = std::strtoul(arguments[i + 1], nullptr, 10);
    } else if (option != "--part" || std::sscanf(arguments[i + 1], "%zu/%zu", &part, &parts) != 2 ||
               part - 1 >= parts) {
      std::printf("unknown: %s %s\n", arguments[i], arguments[i + 1]);
      return 2;
    }
  }
  size_t ran = 0, failed = 0, leftOut = 0;
  std::vector<std::pair<double, std::string>> times;
  for (size_t i = part - 1; i < core_test_count(); i += parts) {
    const std::string name = std::string(core_test_suite(i)) + "." + core_test_name(i);
    if (!only.empty() && !fitsOne(name, only)) continue;
    if (fitsOne(name, without)) {
      std::printf("left out: %s\n", name.c_str());
      leftOut += 1;
      continue;
    }
    ran += 1;
    const double begin = processorSeconds();
    if (const char* failures = core_test_run(i)) {
      failed += 1;
      std::printf("FAILED %s\n%s\n", name.c_str(), failures);
    }
    times.emplace_back(processorSeconds() - begin, name);
    std::fflush(stdout);
  }
  std::sort(times.rbegin(), times.rend());
  for (size_t i = 0; i < std::min(slowest, times.size()); ++i) {
    std::printf("%8.2f s %s\n", times[i].first, times[i].second.c_str());
  }
  const char* label = argumentCount > 1 ? arguments[1] : "core-tests";
  std::printf("%s: %zu C++ tests ran, %zu failed, %zu left out\n", label, ran, failed, leftOut);
  return (ran > 0 || parts > 1) && failed == 0 ? 0 : 1;
}
