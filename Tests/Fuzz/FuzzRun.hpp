// A fuzz run draws cases, runs them on a few threads and counts what became of them.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace mnk::fuzz {

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
  void add(const Tally& other);
};

Tally runFuzz(FuzzRunOptions options);
// Refusals that the targets promise and no case caused.
std::string neverMet(const FuzzRunOptions& options, const Tally& tally);

}  // namespace mnk::fuzz
