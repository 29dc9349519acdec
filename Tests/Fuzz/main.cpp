// Fuzzes the C API with random and adversarial descriptors. Every case is either refused with a complete error and
// changes nothing, or does what its reference says. Cases that are drawn as valid must not be refused.
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "Harness/Arguments.hpp"
#include "MLXNativeKernelsHost/MLXNativeKernelsHost.h"
#include "Target.hpp"

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#include <sanitizer/common_interface_defs.h>
#endif

using namespace mnk::arguments;
using namespace mnk::fuzz;

namespace {

// Kernels run on threads of the device, so what dies is mostly not the thread that knows the case: all are named.
constexpr size_t kMostThreads = 64;
struct Running {
  std::atomic<bool> isUsed = false;
  std::array<char, 160> text = {};
};
std::array<Running, kMostThreads> running;
std::atomic<size_t> threads = 0;
thread_local size_t self = kMostThreads;

void print(const char* text) {
  size_t length = 0;
  while (text[length]) ++length;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, length);
}

void nameCases() {
  for (const Running& one : running) {
    if (!one.isUsed) continue;
    print("fuzz: died in the case of ");
    print(one.text.data());
    print("\n");
  }
}

struct sigaction previous[NSIG];

void onSignal(int number) {
  nameCases();
  // The faulting instruction raises the signal again, for the handler that was there before.
  sigaction(number, &previous[number], nullptr);
  if (number == SIGABRT) raise(number);
}

// Names the running cases when the process dies: by a signal, or by a sanitizer's report.
void nameCaseOnCrash() {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  __sanitizer_set_death_callback(nameCases);
#endif
  struct sigaction action {};
  action.sa_handler = onSignal;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(number, &action, &previous[number]);
}

// The case of this thread, from now on.
void enterCase(std::string_view target, uint64_t seed, uint64_t number) {
  if (self == kMostThreads) self = threads++ % kMostThreads;
  Running& mine = running[self];
  mine.isUsed = false;
  const auto end =
      fmt::format_to_n(mine.text.data(), mine.text.size() - 1, "--target {} --seed {} --case {}", target, seed, number);
  *end.out = 0;
  mine.isUsed = true;
}

void leaveCases() {
  if (self != kMostThreads) running[self].isUsed = false;
}

constexpr uint32_t kMostWorkers = 64;

struct FuzzRunOptions {
  uint64_t cases = 400'000;  // half of which are attention and caches
  uint64_t seed = 1;
  std::optional<uint64_t> only = {};  // the number of one case to run
  std::string target = {};            // empty: all of them
  uint32_t workers = 1;               // no more than kMostWorkers are started, and no more than there are cases
};

struct Tally {
  uint64_t accepted = 0;
  uint64_t refused = 0;
  uint64_t failures = 0;
  uint64_t watched = 0;                          // accepted cases on a device that checks every load and store
  std::map<std::string_view, uint64_t> targets;  // cases of each
  std::map<uint32_t, uint64_t> codes;            // of refusals
  std::map<std::string, uint64_t> refusals;      // by target and what the error said
  std::string firstFailures;                     // in words, with how to run each again
  uint64_t cases() const { return accepted + refused; }

  void add(const Tally& other) {
    accepted += other.accepted;
    refused += other.refused;
    failures += other.failures;
    watched += other.watched;
    for (const auto& [target, count] : other.targets) targets[target] += count;
    for (const auto& [code, count] : other.codes) codes[code] += count;
    for (const auto& [what, count] : other.refusals) refusals[what] += count;
    firstFailures += other.firstFailures;
  }
};

constexpr uint64_t kMostFailures = 5;  // described; after that a worker stops

const Target& choose(const FuzzRunOptions& options, Seeded& random) {
  uint64_t shares = 0;
  for (const Target& target : targets()) shares += target.share;
  uint64_t drawn = random.below(shares);  // also where the target is given, so that the case stays the same
  for (const Target& target : targets()) {
    if (options.target.empty() ? drawn < target.share : target.name == options.target) return target;
    drawn -= target.share;
  }
  return targets().front();
}

void runCase(const FuzzRunOptions& options, Arena& arena, size_t index, uint64_t number, Tally& tally) {
  Seeded random(number, options.seed);
  const Target& target = choose(options, random);
  enterCase(target.name, options.seed, number);
  std::unique_ptr<Case> drawn;
  Verdict verdict;
  try {
    arena.begin(index, random);
    drawn = target.make(arena, random);
    verdict = drawn->run(arena);
    if (options.only) {
      fmt::print("{}\n  {}\n", drawn->text(), verdict.refusal.empty() ? "accepted" : verdict.refusal);
    }
  } catch (const std::exception& exception) {
    verdict.failure = exception.what();
  } catch (const mnk::test::Stop&) {
    verdict.failure = "the reference could not be asked";
  }
  tally.targets[target.name] += 1;
  if (verdict.refusal.empty()) {
    tally.accepted += 1;
    tally.watched += arena.isWatched();
  } else {
    tally.refused += 1;
    tally.codes[static_cast<uint32_t>(verdict.code)] += 1;
    tally.refusals[fmt::format("{}: {}", target.name, verdict.refusal)] += 1;
  }
  if (verdict.failure.empty()) return;
  tally.failures += 1;
  tally.firstFailures +=
      fmt::format("FAILED {}\n  {}\n  again: --target {} --seed {} --case {}\n",
                  drawn ? drawn->text() : std::string(target.name), verdict.failure, target.name, options.seed, number);
}

Tally work(const FuzzRunOptions& options, uint32_t worker) {
  Tally tally;
  const uint64_t begin = options.only.value_or(worker);
  const uint64_t end = options.only ? begin + 1 : options.cases;
  Arena arena(options.seed, (end - begin) / options.workers + 1);
  size_t index = 0;
  for (uint64_t number = begin; number < end && tally.failures < kMostFailures; number += options.workers) {
    runCase(options, arena, index++, number, tally);
  }
  leaveCases();
  for (const size_t leak : arena.casesThatLeak()) {
    const uint64_t number = begin + leak * options.workers;
    tally.failures += 1;
    if (tally.failures > kMostFailures) break;
    tally.firstFailures +=
        fmt::format("FAILED: memory of a case was not released exactly once\n  again: {}--seed {} --case {}\n",
                    options.target.empty() ? "" : fmt::format("--target {} ", options.target), options.seed, number);
  }
  return tally;
}

Tally runFuzz(FuzzRunOptions options) {
  const uint64_t cases = options.only ? 1 : std::max<uint64_t>(options.cases, 1);
  options.workers = static_cast<uint32_t>(std::min<uint64_t>({options.workers, kMostWorkers, cases}));
  std::vector<Tally> tallies(options.workers);
  std::vector<std::thread> threads;
  for (uint32_t worker = 0; worker < options.workers; ++worker) {
    threads.emplace_back([&, worker] {
      try {
        tallies[worker] = work(options, worker);
      } catch (const std::exception& exception) {
        tallies[worker].failures += 1;
        tallies[worker].firstFailures += fmt::format("FAILED {}\n", exception.what());
      }
    });
  }
  Tally all;
  for (uint32_t worker = 0; worker < options.workers; ++worker) {
    threads[worker].join();
    all.add(tallies[worker]);
  }
  return all;
}

// Refusals that the targets promise and no case caused.
std::string neverMet(const FuzzRunOptions& options, const Tally& tally) {
  std::string missing;
  for (const Target& target : targets()) {
    if (!options.target.empty() && target.name != options.target) continue;
    for (const std::string_view what : target.refusals) {
      const std::string key = fmt::format("{}: {}", target.name, what);
      if (!tally.refusals.contains(key)) missing += fmt::format("  {}\n", key);
    }
  }
  return missing;
}
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
