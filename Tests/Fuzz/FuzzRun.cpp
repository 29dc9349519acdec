#include "FuzzRun.hpp"

#include <algorithm>
#include <exception>
#include <thread>

#include "Crash.hpp"
#include "Target.hpp"

namespace mnk::fuzz {

namespace {

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

void recordFailure(Tally& tally, const Target& target, uint64_t seed, uint64_t number, std::string_view text,
                   std::string_view failure) {
  tally.failures += 1;
  tally.firstFailures += fmt::format("FAILED {}\n  {}\n  again: --target {} --seed {} --case {}\n", text, failure,
                                     target.name, seed, number);
}

void runCase(const FuzzRunOptions& options, Arena& arena, size_t index, uint64_t number, Tally& tally) {
  Seeded random(number, options.seed);
  const Target& target = choose(options, random);
  enterCase(target.name, options.seed, number);
  std::string text(target.name);
  Verdict verdict;
  try {
    arena.begin(index, random);
    const std::unique_ptr<Case> drawn = target.make(arena, random);
    text = drawn->text();
    verdict = drawn->run(arena);
    if (options.only) fmt::print("{}\n  {}\n", text, verdict.refusal.empty() ? "accepted" : verdict.refusal);
  } catch (const std::exception& exception) {
    verdict.failure = exception.what();
  } catch (const test::Stop&) {
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
  if (!verdict.failure.empty()) recordFailure(tally, target, options.seed, number, text, verdict.failure);
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

}  // namespace

void Tally::add(const Tally& other) {
  accepted += other.accepted;
  refused += other.refused;
  failures += other.failures;
  watched += other.watched;
  for (const auto& [target, count] : other.targets) targets[target] += count;
  for (const auto& [code, count] : other.codes) codes[code] += count;
  for (const auto& [what, count] : other.refusals) refusals[what] += count;
  firstFailures += other.firstFailures;
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

}  // namespace mnk::fuzz
