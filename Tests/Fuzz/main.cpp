// Fuzzes the C API with random and adversarial descriptors. Every case is either refused with a complete error and
// changes nothing, or does what its reference says. Cases that are drawn as valid must not be refused.
//   fuzz [--cases N] [--seed S] [--target NAME] [--workers N]
//   fuzz --target NAME --seed S --case N      one case again, in words
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

#include "Crash.hpp"
#include "FuzzRun.hpp"
#include "MLXNativeKernelsHost/MLXNativeKernelsHost.h"
#include "Target.hpp"

using namespace mnk::fuzz;

namespace {

constexpr uint64_t kEnoughToMeetAll = 400'000;

bool readNumber(const char* text, uint64_t& number) {
  const char* end = text + std::strlen(text);
  const auto read = std::from_chars(text, end, number);
  return read.ec == std::errc() && read.ptr == end;
}

bool isTarget(std::string_view name) {
  for (const Target& target : targets()) {
    if (target.name == name) return true;
  }
  return false;
}

// What is wrong with the arguments; empty where they are fine.
std::string readOptions(int count, char** arguments, FuzzRunOptions& options) {
  for (int i = 1; i < count; i += 2) {
    const std::string_view option = arguments[i];
    if (i + 1 == count) return fmt::format("{} needs a value", option);
    const char* value = arguments[i + 1];
    if (option == "--target") {
      options.target = value;
      if (!isTarget(value)) return fmt::format("there is no target {}", value);
      continue;
    }
    uint64_t number = 0;
    if (!readNumber(value, number)) return fmt::format("{} needs a number, not {}", option, value);
    if (option == "--cases") {
      options.cases = number;
    } else if (option == "--seed") {
      options.seed = number;
    } else if (option == "--case") {
      options.only = number;
    } else if (option == "--workers") {
      if (number == 0) return "--workers needs a number of at least 1, not 0";
      options.workers = static_cast<uint32_t>(std::min<uint64_t>(number, kMostWorkers));
    } else {
      return fmt::format("unknown: {} {}", option, value);
    }
  }
  return {};
}

std::string_view name(uint32_t code) {
  return mnk::name(static_cast<mnk::ErrorCode>(code));
}

}  // namespace

int main(int argumentCount, char** arguments) {
  mnk_register_host_device();
  FuzzRunOptions options;
  if (const std::string wrong = readOptions(argumentCount, arguments, options); !wrong.empty()) {
    fmt::print(stderr, "fuzz: {}\n", wrong);
    return 2;
  }
  nameCaseOnCrash();
  Tally tally = runFuzz(options);
  for (const auto& [what, count] : tally.refusals) fmt::print("{:8} {}\n", count, what);
  const bool isLong = !options.only && options.cases >= kEnoughToMeetAll;
  if (const std::string missing = neverMet(options, tally); isLong && !missing.empty() && tally.failures == 0) {
    tally.failures += 1;
    tally.firstFailures += fmt::format("FAILED: rules that no case broke\n{}", missing);
  }
  if (isLong && tally.accepted * 3 < tally.cases()) {
    tally.failures += 1;
    tally.firstFailures += "FAILED: less than a third of the cases were accepted\n";
  }
  std::vector<std::string> codes;
  for (const auto& [code, count] : tally.codes) codes.push_back(fmt::format("{} {}", count, name(code)));
  std::vector<std::string> cases;
  for (const auto& [target, count] : tally.targets) cases.push_back(fmt::format("{} {}", count, target));
  fmt::print(
      "{}fuzz: {} cases ({}; {} accepted, of which {} on a device with full checking; {} refused, by code: {}), seed "
      "{}: {}\n",
      tally.firstFailures, tally.cases(), cases.empty() ? "none" : fmt::format("{}", fmt::join(cases, ", ")),
      tally.accepted, tally.watched, tally.refused, codes.empty() ? "none" : fmt::format("{}", fmt::join(codes, ", ")),
      options.seed, tally.failures == 0 ? "no failure" : fmt::format("{} failures", tally.failures));
  return tally.failures == 0 ? 0 : 1;
}
