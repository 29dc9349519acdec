// Runs the C++ tests from a command line, see CoreTests.h.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "Cache/KilledSave.hpp"
#include "CoreTests.h"
#include "Harness/Arguments.hpp"
#include "MLXNativeKernelsHost/MLXNativeKernelsHost.h"

using namespace mnk::arguments;

namespace {

bool fitsOne(const std::string& name, const std::vector<std::string>& starts) {
  return std::any_of(starts.begin(), starts.end(), [&](const std::string& start) { return name.starts_with(start); });
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
  std::vector<std::string> only, without;
  size_t part = 1, parts = 1, slowest = 0;
  const auto added = [](std::vector<std::string>& starts) {
    return [&starts](std::string_view start) { return starts.emplace_back(start), std::string(); };
  };
  const auto readPart = [&](std::string_view value) {
    const bool isPart = std::sscanf(std::string(value).c_str(), "%zu/%zu", &part, &parts) == 2 && part - 1 < parts;
    return std::string(isPart ? "" : "a part such as 1/2");
  };
  const auto saveUntilKilled = [](std::string_view path) -> std::string {
    mnk::test::saveUntilKilled(std::string(path));
  };
  const Option options[] = {
      {"--only", "START", "runs the tests whose Suite.Test starts with this; repeatable", added(only)},
      {"--without", "START", "leaves these out; repeatable", added(without)},
      {"--part", "I/N", "runs each Nth test", readPart},
      {"--slowest", "N", "prints the times of the slowest tests", number(slowest)},
      {"--save-until-killed", "FILE", "saves a cache until it is killed", saveUntilKilled}};
  const size_t first = std::min(argumentCount, 2);
  const std::span given(arguments + first, argumentCount - first);
  if (const auto status = readArguments("LABEL OPTIONS: runs the C++ tests", options, given)) return *status;
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
  for (const std::string& start : only) {
    const auto fits = [&](const auto& time) { return time.second.starts_with(start); };
    if (parts > 1 || std::any_of(times.begin(), times.end(), fits)) continue;
    std::printf("no test that ran starts with %s\n", start.c_str());
    failed += 1;
  }
  std::sort(times.rbegin(), times.rend());
  for (size_t i = 0; i < std::min(slowest, times.size()); ++i) {
    std::printf("%8.2f s %s\n", times[i].first, times[i].second.c_str());
  }
  const char* label = argumentCount > 1 ? arguments[1] : "core-tests";
  std::printf("%s: %zu C++ tests ran, %zu failed, %zu left out\n", label, ran, failed, leftOut);
  return (ran > 0 || parts > 1) && failed == 0 ? 0 : 1;
}
