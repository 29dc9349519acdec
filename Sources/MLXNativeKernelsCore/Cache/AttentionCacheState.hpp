// The state of an AttentionCache, which its copies share.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "Cache/AttendedRows.hpp"
#include "Cache/CacheCursors.hpp"
#include "Cache/CacheStorage.hpp"
#include "Ops/FlashDecode/FlashDecodeLayout.hpp"
#include "Support/Guard.hpp"

namespace mnk {

struct AttentionCache::State {
  AttentionCacheDescriptor descriptor;
  CacheStorage storage;
  CacheCursors cursors;

  State(AttentionCacheDescriptor of, CacheStorage with, CacheSlots slots)
      : descriptor(std::move(of)), storage(std::move(with)), cursors(slots, descriptor.sequences, windowOf({})) {}

  // What this encoder records for the cache. All listed sequences are known.
  static Result<CacheCursors::Recording*> join(const std::shared_ptr<State>& self, CommandEncoder& encoder,
                                               std::span<const uint32_t> sequences);
  // A cache that a call fills from `source`. Its sequences are suspect until the encoder is committed.
  static Result<AttentionCache> makeFrom(const State& source, const AttentionCacheDescriptor& descriptor);

  // The window of rows that attend with these options.
  uint32_t windowOf(const AttentionOptions& options) const {
    return options.window == 0 && descriptor.slidingWindow ? descriptor.slidingWindow->window : options.window;
  }
  FlashDecode attention(const HeadsView& queries, const AttentionResults& results, const AttentionOptions& options,
                        std::vector<AttendedSequence> attended) const;
  // Attention for a list of entries, all at once; none if they have no rows.
  Result<std::optional<FlashDecode>> attentionOf(const HeadsView& queries, const AttentionResults& results,
                                                 const AttentionOptions& options, const CallRows& call,
                                                 std::span<const SequenceRows> entries,
                                                 std::span<const AttendedSequence> attended) const;
  Result<Plan> planAttendRows(const std::shared_ptr<Device>& device, const HeadsView& queries,
                              const AttentionResults& results, const AttentionOptions& options, const CallRows& call,
                              std::span<const SequenceRows> entries, std::span<const AttendedSequence> attended) const;
  // Queries that this step rotated by the next positions of a cache attend at these positions, and after prefixes of as
  // many tokens as the rotation counted.
  Result<void> checkRotated(std::string_view call, const CommandEncoder& encoder, CacheCursors::Recording& recording,
                            const HeadsView& queries, std::span<const SequenceRows> entries,
                            std::span<const AttendedSequence> attended, const AttentionOptions& options,
                            std::optional<uint64_t> prefixTokens = {}) const;
  // The error of rows that would not see their own tokens, because there are none or the ring has overwritten them.
  std::optional<Error> lostRows(std::span<const SequenceRows> entries, std::span<const AttendedSequence> attended,
                                const AttentionOptions& options) const;
  // Slots for the tokens of a list. Advances the next position of each sequence past them.
  struct RowSlots {
    std::vector<uint32_t> sequences;
    std::vector<uint32_t> slots;
  };
  Result<RowSlots> rowSlots(std::span<const SequenceRows> entries, std::map<uint32_t, uint64_t>& next) const;

  // Plans appendAndAttend and its parts. Advances the cursors past what is planned.
  Result<Plan> planStep(const std::shared_ptr<Device>& device, const AppendAndAttend& step,
                        std::map<uint32_t, CacheCursor>& cursors) const;
  // The ops of tokens that are all stored before the first of them attends.
  struct StepOps;
  Result<void> repeatStep(CommandEncoder& encoder, const AppendAndAttend& step, uint32_t sequence,
                          const CacheCursor& from, const std::function<Result<Plan>()>& fresh) const;
  Result<Plan> planChunks(const std::shared_ptr<Device>& device, const AppendAndAttend& step, uint64_t firstToken,
                          CacheCursor& cursor) const;
  // All entries of a list at once, if `areAtOnce`. Advances the cursors.
  bool areAtOnce(const AppendAndAttend& step, std::span<const SequenceRows> entries,
                 const std::map<uint32_t, CacheCursor>& cursors) const;
  Result<StepOps> opsOf(const AppendAndAttend& step, std::optional<MultiRoPE> rotation,
                        std::span<const SequenceRows> entries, std::map<uint32_t, CacheCursor>& cursors) const;
  Result<void> encodeEntries(CommandEncoder& encoder, const AppendAndAttend& step,
                             std::map<uint32_t, CacheCursor>& cursors) const;
  Result<Plan> planEntries(const std::shared_ptr<Device>& device, const AppendAndAttend& step,
                           std::span<const SequenceRows> entries, std::map<uint32_t, CacheCursor>& cursors) const;
  // Checks the operands of appendAndAttend before they are divided, and returns its entries.
  Result<std::vector<SequenceRows>> checkedEntries(const AppendAndAttend& step,
                                                   const std::map<uint32_t, CacheCursor>& cursors) const;
  // appendAndAttend after prefixes. Advances the cursors past what is encoded.
  class PrefixedAttention;
  Result<void> encodeStepAfter(CommandEncoder& encoder, CacheCursors::Recording& recording, const AppendAndAttend& step,
                               std::map<uint32_t, CacheCursor>& cursors) const;
  std::vector<uint32_t> allSequences() const;
  static Result<void> copyFrom(CommandEncoder& encoder, const std::shared_ptr<State>& self,
                               const std::shared_ptr<State>& from, std::span<const uint32_t> sources,
                               std::span<const uint32_t> targets);
  // Records that `rows` rows attend to a sequence.
  void noteRead(CacheCursors::Recording& recording, const AttendedSequence& attended, uint64_t rows,
                const AttentionOptions& options) const;
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
