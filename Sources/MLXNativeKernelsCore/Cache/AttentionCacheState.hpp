// The state of an AttentionCache, which its copies share.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "Cache/CacheCursors.hpp"
#include "Cache/CacheStorage.hpp"
#include "Cache/ResolvedStep.hpp"
#include "Support/Errors.hpp"

namespace mnk {

struct AttentionCache::State {
  AttentionCacheDescriptor descriptor;
  CacheStorage storage;
  CacheCursors cursors;

  State(AttentionCacheDescriptor of, CacheStorage with, CacheSlots slots)
      : descriptor(std::move(of)), storage(std::move(with)), cursors(slots, descriptor.sequences, ownWindow()) {}

  // What this encoder records for the cache. All listed sequences are known.
  static Result<CacheCursors::Recording*> join(const std::shared_ptr<State>& self, CommandEncoder& encoder,
                                               std::span<const uint32_t> sequences);
  // A cache that a call fills from `source`. Its sequences are suspect until the encoder is committed.
  static Result<AttentionCache> makeFrom(const State& source, const AttentionCacheDescriptor& descriptor);
  std::vector<uint32_t> allSequences() const;
  static Result<void> copyFrom(CommandEncoder& encoder, const std::shared_ptr<State>& self,
                               const std::shared_ptr<State>& from, std::span<const uint32_t> sources,
                               std::span<const uint32_t> targets);

  uint32_t ownWindow() const { return descriptor.slidingWindow ? descriptor.slidingWindow->window : 0; }

  // The calls of steps, which a recording stores as they are.
  static Result<void> call(const AttentionCache& cache, ResolvedStep::Kind kind, CommandEncoder& encoder,
                           const CacheStep& step);
  // Resolves, checks, plans and records a step.
  static Result<void> run(const std::shared_ptr<State>& self, ResolvedStep::Kind kind, CommandEncoder& encoder,
                          const CacheStep& step);
  // The rows of each sequence that the step lists.
  struct Entries;
  Result<void> resolveEntries(ResolvedStep& step, Entries& entries, std::span<const uint32_t> sequences,
                              CacheCursors::Recording& recording) const;
  // Checks that each operand is valid, and that all are of the same tokens.
  Result<void> checkViews(const ResolvedStep& step) const;
  // Checks the operands of the whole step before they are divided.
  Result<void> checkOperands(const ResolvedStep& step) const;
  static Result<void> checkListedOnce(const ResolvedStep& step);
  // Checks that rows which the encoder rotated are used for what they were rotated for.
  Result<void> checkRotated(const ResolvedStep& step, const CommandEncoder& encoder, CacheCursors::Recording& recording,
                            std::optional<uint64_t> prefixTokens = {}) const;
  // The error of rows that attend and would not see their own tokens, because the ring has overwritten them.
  std::optional<Error> lostRows(const ResolvedStep& step) const;
  void noteReads(const ResolvedStep& step, CacheCursors::Recording& recording) const;

  // Whether all rows can be stored before the first of them attends.
  bool isAtOnce(const ResolvedStep& step) const;
  struct StepOps;
  Result<void> makeOps(StepOps& ops, const ResolvedStep& step, const StepPart& part) const;
  Result<Plan> plan(const std::shared_ptr<Device>& device, const ResolvedStep& step) const;
  Result<Plan> planDivided(const std::shared_ptr<Device>& device, const ResolvedStep& step) const;
  Result<void> encode(CommandEncoder& encoder, const ResolvedStep& step) const;
  class PrefixedAttention;
  Result<void> encodeAfterPrefixes(CommandEncoder& encoder, CacheCursors::Recording& recording,
                                   const ResolvedStep& step) const;

  // Attention of rows that are listed by sequence; nothing if there are none.
  Result<std::optional<FlashDecode>> attentionOf(const HeadsView& queries, const AttentionResults& results,
                                                 const AttentionOptions& options, const RowCounts& call,
                                                 std::vector<AttendedSequence> attended) const;
  FlashDecode attention(const HeadsView& queries, const AttentionResults& results, const AttentionOptions& options,
                        std::vector<AttendedSequence> attended) const;
};

// "8 heads of 128 as f16", the same for caches whose slots hold the same, but for means and channel scales
std::string shapeText(const AttentionCacheDescriptor& descriptor);

// Runs a call of a cache. Errors name the call, and a recording stores it as the call that `again` returns.
template <typename Again, typename Body>
Result<void> cacheCall(CommandEncoder& encoder, std::string_view name, const Again& again, const Body& body,
                       bool hasOneForm = false) {
  return encoder.remembering(
      again, [&] { return guardedAs(name, body); }, hasOneForm);
}

}  // namespace mnk
