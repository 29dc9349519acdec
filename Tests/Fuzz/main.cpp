// Fuzzes the C API with random and adversarial descriptors. Every case is either refused with a complete error and
// changes nothing, or does what its reference says. Cases that are drawn as valid must not be refused.
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "Crash.hpp"
#include "FuzzRun.hpp"
#include "Harness/Arguments.hpp"
#include "MLXNativeKernelsHost/MLXNativeKernelsHost.h"
#include "Target.hpp"

using namespace mnk::arguments;
using namespace mnk::fuzz;

namespace {

constexpr uint64_t kEnoughToMeetAll = 400'000;

std::string readTarget(std::string_view name, std::string& target) {
  std::vector<std::string> names;
  for (const Target& each : targets()) names.emplace_back(each.name);
  target = name;
  return std::ranges::count(names, name) != 0 ? "" : mnk::oneOf(names, "nothing");
}

std::string_view name(uint32_t code) {
  return mnk::name(static_cast<mnk::ErrorCode>(code));
}

}  // namespace

int main(int argumentCount, char** arguments) {
  mnk_register_host_device();
  FuzzRunOptions options;
  const mnk::arguments::Option table[] = {
      {"--cases", "N", "how many, 400000 by default", number(options.cases, 0, UINT64_MAX)},
      {"--seed", "S", "draws other cases", number(options.seed, 0, UINT64_MAX)},
      {"--target", "NAME", "draws cases of one target alone",
       [&](std::string_view name) { return readTarget(name, options.target); }},
      {"--workers", "N", "threads", number(options.workers, 1)},
      {"--case", "N", "with the seed and the target: one case again, in words", number(options.only, 0, UINT64_MAX)}};
  const std::span given(arguments + 1, argumentCount - 1);
  if (const auto status = readArguments("fuzz OPTIONS: fuzzes the C API", table, given)) return *status;
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
