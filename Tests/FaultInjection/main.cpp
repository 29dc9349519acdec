// Runs a scenario once for each of the library's allocations with that one failing, then with several in a row:
//   inject [--device host|metal] [--api c++|c] [--cold | --warm] [--burst N] [--point N]
// A failure prints the options that run it again alone.
#include <fcntl.h>
#include <fmt/format.h>
#include <sanitizer/lsan_interface.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>

#include "Scenario.hpp"
#include "SoftMetal.hpp"

using namespace mnk::inject;

namespace {

struct Options {
  std::optional<bool> isMetal, isC, isCold;
  std::optional<uint64_t> burst, point;
};

// What runs now, as options; for a process that is about to end.
char running[256] = "nothing";

[[noreturn]] void reportTermination() {
  std::fprintf(stderr, "the process was about to end in %s\nrun it again with: .ci/inject %s\n", currentCall.load(),
               running);
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

// A device, an API and whether the device is made anew in each run.
class Suite {
 public:
  Suite(bool isMetal, bool isC, bool isCold, std::string folder)
      : isC_(isC), setting_{isMetal, isCold, std::move(folder)}, session_(isC ? makeCSession() : makeCppSession()) {
    if (!isCold) (void)session_->makeDevice(isMetal);
    // The second finds the memory that the device keeps, such as scratch memory.
    for (int i = 0; i < 2; ++i) runScenario(*session_, setting_, numbers_, ignored_);
  }
  ~Suite() {
    session_->dropTensors();
    session_->dropDevice();
  }

  // False where the scenario has no such allocation.
  bool run(uint64_t point, uint64_t burst) {
    std::snprintf(running, sizeof running, "--device %s --api %s %s --burst %llu --point %llu",
                  setting_.isMetal ? "metal" : "host", isC_ ? "c" : "c++", setting_.isCold ? "--cold" : "--warm",
                  static_cast<unsigned long long>(burst), static_cast<unsigned long long>(point));
    const size_t files = openFiles();
    const int64_t mappings = smallMappings();
    begin(point, burst, setting_.isMetal ? Threads::handlersOfMetal : Threads::all);
    bool isReached = true;
    try {
      runScenario(*session_, setting_, numbers_, tally);
      isReached = failed() != 0;
      stop();
      if (setting_.isMetal) softmetal::waitUntilIdle();
      if (openFiles() != files) throw Wrong(fmt::format("{} files are open, before it were {}", openFiles(), files));
      if (!settlesAt(smallMappings, mappings + kKeptMappings)) {
        throw Wrong(fmt::format("{} mappings are left, before it were {}", smallMappings(), mappings));
      }
      if (!std::filesystem::is_empty(setting_.folder)) throw Wrong("a file is left in the folder");
      for (const std::string& violation : softmetal::takeViolations()) throw Wrong(violation);
    } catch (const std::exception& exception) {
      stop();
      reportFailure(exception.what());
      session_->dropTensors();
      if (setting_.isCold) session_->dropDevice();
      for (const auto& entry : std::filesystem::directory_iterator(setting_.folder)) {
        std::filesystem::remove(entry.path());
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

  Tally tally;
  uint64_t runs = 0, failures = 0;

 private:
  void reportFailure(const char* what) {
    ++failures;
    std::fprintf(stderr, "wrong: %s\n  in or after %s\n  run it again with: .ci/inject %s\n", what, currentCall.load(),
                 running);
  }

  // Scratch memory that the device keeps may be kept anew where it was not.
  static constexpr int64_t kKeptMappings = 0;

  bool isC_;
  Setting setting_;
  std::unique_ptr<Session> session_;
  Numbers numbers_;
  Tally ignored_;
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view option = arguments[i];
    const auto value = [&] { return i + 1 < count ? std::string_view(arguments[++i]) : std::string_view(); };
    if (option == "--device") {
      options.isMetal = value() == "metal";
    } else if (option == "--api") {
      options.isC = value() == "c";
    } else if (option == "--cold" || option == "--warm") {
      options.isCold = option == "--cold";
    } else if (option == "--burst") {
      options.burst = std::strtoull(value().data(), nullptr, 10);
    } else if (option == "--point") {
      options.point = std::strtoull(value().data(), nullptr, 10);
    } else {
      std::fprintf(stderr, "unknown option %s\n", arguments[i]);
      std::exit(2);
    }
  }
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = parse(count, arguments);
  std::set_terminate(reportTermination);
  char folder[] = "/tmp/mnk-inject-XXXXXX";
  if (!::mkdtemp(folder)) return 2;
  uint64_t points = 0, bursts = 0, failures = 0;
  Tally tally;
  for (const bool isMetal : {false, true}) {
    for (const bool isC : {false, true}) {
      for (const bool isCold : {false, true}) {
        if (options.isMetal.value_or(isMetal) != isMetal || options.isC.value_or(isC) != isC ||
            options.isCold.value_or(isCold) != isCold) {
          continue;
        }
        Suite suite(isMetal, isC, isCold, folder);
        for (const uint64_t burst : {1, 2, 3, 8}) {
          if (options.burst.value_or(burst) != burst) continue;
          // All points with a device that is kept; of the others a part, that differs with the length of the burst.
          const uint64_t stride = (isCold ? 7 : 1) * (burst == 1 ? 1 : 3);
          const uint64_t first = options.point.value_or(burst % stride);
          for (uint64_t point = first; suite.run(point, burst) && !options.point && suite.failures < 20;) {
            point += stride;
            ++(burst == 1 ? points : bursts);
          }
        }
        suite.checkLeaks();
        failures += suite.failures;
        tally.succeeded += suite.tally.succeeded;
        tally.failed += suite.tally.failed;
        std::printf("%s, %s, %s: %llu runs, %llu wrong\n", isMetal ? "metal" : "host", isC ? "C" : "C++",
                    isCold ? "cold" : "warm", static_cast<unsigned long long>(suite.runs),
                    static_cast<unsigned long long>(suite.failures));
        std::fflush(stdout);
      }
    }
  }
  std::filesystem::remove_all(folder);
  fmt::print("{}: {} points and {} bursts; {} calls failed, {} succeeded\n", failures == 0 ? "passed" : "failed",
             points, bursts, tally.failed, tally.succeeded);
  std::fflush(stdout);
  return failures == 0 ? 0 : 1;
}
