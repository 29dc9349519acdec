// Runs a scenario once for each allocation in calls of the library, making that one fail, then with several failing in
// a row. A failure prints the options that reproduce it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>

#include "Calls.hpp"
#include "Harness/Arguments.hpp"
#include "MLXNativeKernelsHost/MLXNativeKernelsHost.h"
#include "Scenario.hpp"
#include "SoftMetal.hpp"

using namespace mnk::arguments;
using namespace mnk::inject;

namespace {

struct Options {
  std::optional<bool> isMetal, isCold;
  std::optional<Part> part;
  std::optional<uint64_t> burst, stride, point;
};

// The current run as options, for the report of a terminating process.
char running[256] = "nothing";

[[noreturn]] void reportTermination() {
  std::fprintf(stderr, "the process was about to end in %s\nrun it again with: .ci/inject %s\n", currentCall.load(),
               running);
  __sanitizer_print_stack_trace();
  std::_Exit(1);
}

size_t openFiles() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

template <typename Counter>
bool settlesAt(Counter counter, int64_t expected) {
  for (int i = 0; i < 2000; ++i) {
    if (static_cast<int64_t>(counter()) <= expected) return true;
    ::usleep(1000);
  }
  return false;
}

// One part of the scenario on a device.
class Suite {
 public:
  explicit Suite(Setting setting) : setting_(std::move(setting)) {
    // The second run uses memory that the device retains, such as scratch memory.
    for (int i = 0; i < 2; ++i) scenario_->run();
    scenario_->tally = {};
  }

  // Returns false if the scenario does not reach this allocation.
  bool run(uint64_t point, uint64_t burst) {
    std::snprintf(running, sizeof running, "%s --burst %llu --point %llu", name().c_str(),
                  static_cast<unsigned long long>(burst), static_cast<unsigned long long>(point));
    const size_t files = openFiles();
    const int64_t mappings = smallMappings();
    begin(point, burst, setting_.isMetal ? Threads::handlersOfMetal : Threads::all);
    bool isReached = true;
    try {
      scenario_->run();
      isReached = failed() != 0;
      stop();
      if (setting_.isMetal) softmetal::waitUntilIdle();
      if (openFiles() != files) throw Wrong(fmt::format("{} files are open, but {} were before", openFiles(), files));
      if (!settlesAt(smallMappings, mappings)) {
        throw Wrong(fmt::format("{} mappings are left, but {} were before", smallMappings(), mappings));
      }
      if (!std::filesystem::is_empty(setting_.folder)) throw Wrong("a file is left in the folder");
      for (const std::string& violation : softmetal::takeViolations()) throw Wrong(violation);
    } catch (const std::exception& exception) {
      stop();
      reportFailure(exception.what());
      scenario_->clear();
      for (const auto& entry : std::filesystem::directory_iterator(setting_.folder)) {
        std::filesystem::remove_all(entry.path());
      }
    }
    ++runs;
    constexpr uint64_t kBetweenLeakChecks = 100;
    if (runs % kBetweenLeakChecks == 0) checkLeaks();
    return isReached;
  }

  void checkLeaks() {
    if (__lsan_do_recoverable_leak_check() != 0) reportFailure("memory has leaked in one of the last 100 runs");
  }

  // The options that select this suite.
  std::string name() const {
    return fmt::format("--device {} {} --part {}", setting_.isMetal ? "metal" : "host",
                       setting_.isCold ? "--cold" : "--warm", kPartNames[static_cast<size_t>(setting_.part)]);
  }

  const Tally& tally() const { return scenario_->tally; }

  uint64_t runs = 0, failures = 0;

 private:
  void reportFailure(const char* what) {
    ++failures;
    std::fprintf(stderr, "wrong: %s\n  in or after %s\n  run it again with: .ci/inject %s\n", what, currentCall.load(),
                 running);
  }

  const Setting setting_;
  const std::unique_ptr<Scenario> scenario_ = Scenario::make(setting_);
};

struct Total {
  uint64_t points = 0, bursts = 0, failures = 0;
  Tally calls;
};

void runSuite(const Options& options, const Setting& setting, Total& total) {
  constexpr uint64_t kMaxFailures = 20;
  Suite suite(setting);
  for (const uint64_t burst : {1, 2, 3, 8}) {
    if (options.burst.value_or(burst) != burst) continue;
    // Variants that compile in each run, or make a device, test fewer points. Calls that access files test all: they
    // call the system's libraries the most.
    const uint64_t between = setting.isCold ? 61 : setting.part == Part::library ? 17 : 7;
    const uint64_t single = setting.part == Part::files ? 1 : between;
    const uint64_t stride = options.stride.value_or(burst == 1 ? single : 3 * between);
    const uint64_t first = options.point.value_or((3 * setting.isMetal + burst) % stride);
    for (uint64_t point = first; suite.run(point, burst) && suite.failures < kMaxFailures; point += stride) {
      ++(burst == 1 ? total.points : total.bursts);
      if (options.point) break;
    }
  }
  suite.checkLeaks();
  total.failures += suite.failures;
  total.calls.succeeded += suite.tally().succeeded;
  total.calls.failed += suite.tally().failed;
  fmt::print("{}: {} runs, {} wrong\n", suite.name(), suite.runs, suite.failures);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  mnk_register_host_device();
  Options options;
  std::vector<std::pair<std::string, std::optional<Part>>> parts;
  for (const Part part : kParts) parts.emplace_back(kPartNames[static_cast<size_t>(part)], part);
  const Option table[] = {
      {"--device", "KIND", "host or metal", choice(options.isMetal, {{"host", false}, {"metal", true}})},
      {"--cold", "", "the scenario makes the device", constant(options.isCold, true)},
      {"--warm", "", "the device is there before", constant(options.isCold, false)},
      {"--part", "NAME", "library, ops, dense, quantized or files", choice(options.part, parts)},
      {"--burst", "N", "how many allocations fail in a row", number(options.burst, 1)},
      {"--stride", "N", "the distance of allocations that fail", number(options.stride, 1)},
      {"--point", "N", "only this allocation fails", number(options.point)}};
  const std::string_view about = "inject OPTIONS: fails allocations of the library";
  if (const auto status = readArguments(about, table, {arguments + 1, arguments + count})) return *status;
  std::set_terminate(reportTermination);
  char folder[] = "/tmp/mnk-inject-XXXXXX";
  if (!::mkdtemp(folder) || ::setenv("TMPDIR", folder, 1) != 0) return 2;
  Total total;
  for (const bool isMetal : {false, true}) {
    for (const bool isCold : {false, true}) {
      for (const Part part : kParts) {
        if (options.isMetal.value_or(isMetal) != isMetal || options.isCold.value_or(isCold) != isCold ||
            (isCold && (part == Part::library || part == Part::files)) || options.part.value_or(part) != part) {
          continue;
        }
        runSuite(options, {part, isMetal, isCold, folder}, total);
      }
    }
  }
  std::filesystem::remove_all(folder);
  const bool isGood = total.failures == 0 && total.points != 0;  // without a point, nothing is tested
  fmt::print("{}: {} points and {} bursts; {} calls failed, {} succeeded\n", isGood ? "passed" : "failed", total.points,
             total.bursts, total.calls.failed, total.calls.succeeded);
  std::fflush(stdout);
  return isGood ? 0 : 1;
}
