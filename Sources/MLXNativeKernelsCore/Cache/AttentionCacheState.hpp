// What an AttentionCache is made of: its storage, its steps as it runs them, and the state that its copies share.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "Cache/CacheCursors.hpp"
#include "MLXNativeKernels/AttentionCache.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "Ops/Common/CacheAddressing.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Support/Errors.hpp"

namespace mnk {

// The memory of a cache, dense, quantized or mixed, and which op writes and reads it.
class CacheStorage {
 public:
  // Copies means and channel scales into private memory and updates the descriptor to refer to the copies.
  static Result<CacheStorage> make(const std::shared_ptr<Device>& device, AttentionCacheDescriptor& descriptor);

  // The planes of keys and values: elements or codes.
  const KVCacheView& view() const { return view_; }
  const std::optional<QuantizedKVCacheView>& quantizedView() const { return quantized_; }
  // What attention reads.
  std::variant<KVCacheView, QuantizedKVCacheView> attended() const {
    if (quantized_) return *quantized_;
    return view_;
  }
  // What a file holds of each slot, in this order; what is dense has no scales.
  enum Plane : uint8_t { keys, keyScales, values, valueScales };
  using Planes = std::array<std::optional<Tensor>, 4>;
  Planes planes() const;
  uint64_t bytes() const;

  // The op that appends tokens to one sequence.
  using Append = std::variant<KVCacheWrite, KVCacheQuantize>;
  Append append(const HeadsView& keys, const HeadsView& values, uint32_t sequence = 0, uint64_t position = 0) const;
  // The ops that store each token in the listed slot of the listed sequence: one, unless the list is longer than an op
  // can take.
  std::vector<Append> appendRows(const HeadsView& keys, const HeadsView& values, std::span<const uint32_t> sequences,
                                 std::span<const uint32_t> slots) const;
  // Consecutive sequences of `length` positions each, which hold their pinned positions and those from `oldest` on.
  struct Copied {
    uint64_t source = 0, target = 0, sequences = 1;
    uint64_t length = 0, oldest = 0;
  };
  // Copies them byte for byte from storage of the same shape, also of this one, whose capacity may differ.
  Result<Plan> planCopy(const CacheStorage& from, const Copied& copied) const;
  // Quantizes slots of a dense cache with the same extents, for sequences that hold the same slots.
  Result<Plan> planQuantize(const KVCacheView& source, uint64_t sequence, uint64_t sequences,
                            const SlotRun& slots) const;
  // Whether quantization depends on the head (means or channel scales), so that several sequences cannot be viewed as
  // one sequence with more heads.
  bool hasChannels() const;
  Result<Plan> planDequantize(const std::optional<Tensor>& keys, const std::optional<Tensor>& values, uint32_t sequence,
                              uint64_t position, KVDomain domain) const;

 private:
  KVCacheView view_;
  std::optional<QuantizedKVCacheView> quantized_;
  KVQuantizeOptions options_;
};

// Plans appends. With a rotation, they also rotate its keys, which they store, and its queries, as RotaryAppend
// describes; `firstToken` is the index of the first token in a tensor of positions.
Result<Plan> planAppends(std::span<const CacheStorage::Append> appends, const std::optional<MultiRoPE>& rotation = {},
                         uint64_t firstToken = 0);

// Bytes of one slot of one head in each plane, 0 for a plane that does not exist. Needs no allocated memory.
// valueHeadDim must not be 0.
std::array<uint64_t, 4> slotBytes(const AttentionCacheDescriptor& descriptor);

// The rows of a step: which sequences of a cache they belong to, at which positions, and how a call is divided.

// Neighboring rows of a call that are tokens of one sequence.
struct StepEntry {
  uint32_t sequence = 0;
  uint64_t rows = 0;
  CacheCursor before = {};        // of the sequence at the first row
  CacheCursor after = {};         // behind the last row, once all rows of the call are stored
  StepEntry* previous = nullptr;  // the one before it of the same sequence
  bool isLast = true;             // of its sequence

  // The sequence as the last row sees it.
  AttendedSequence attended() const {
    return {.sequence = sequence, .length = after.next, .highest = after.highest > after.next ? after.highest : 0};
  }
};

// Fails unless the tokens have no axis of sequences, or one of extent 1.
Result<void> checkOneSequence(const HeadsView& view);

// The entries of a list, linked by sequence, without cursors. Without counts, a view with the number of sequences that
// are listed gives each its own tokens, and a view with one sequence gives each one token; a single sequence takes all
// tokens.
Result<std::vector<StepEntry>> stepEntries(const HeadsView& view, std::span<const uint32_t> sequences,
                                           const std::optional<std::vector<uint32_t>>& rowCounts);

// Fails if the sequence would grow beyond the positions that attention supports.
Result<void> checkPositions(uint32_t sequence, uint64_t end);

// How many rows some entries have: `rows` each, or 0 if they differ.
struct RowCounts {
  uint64_t total = 0;
  uint64_t entries = 0;
  uint64_t rows = 0;

  static RowCounts of(std::span<const StepEntry> entries);
  bool areEqual() const { return rows != 0 || total == 0; }
};

// `count` runs of `rows` tokens each, starting at a token, as a view with `count` sequences. In a view with several
// sequences, tokens are numbered across sequences; several runs must be its sequences, and one lies within a sequence.
HeadsView runsOf(const HeadsView& view, uint64_t firstToken, uint64_t rows, uint64_t count);

// The part of the results for the rows from `first` on, shaped as results of `count` sequences with `rows` rows.
Result<AttentionResults> resultsOf(AttentionResults results, const RowCounts& call, uint64_t first, uint64_t rows,
                                   uint64_t count);
// Checks all results before they are divided: either one axis of all rows, or an axis of entries and one of rows.
Result<void> checkResults(const AttentionResults& results, const RowCounts& rows, uint64_t heads, uint64_t headDim);
// Each part of a call checks its own operands. This checks that no part writes results or `targets` that another part
// reads.
Result<void> checkOverlap(const std::vector<NamedRange>& sources, const AttentionResults& results,
                          std::vector<NamedRange> targets = {});

// Entries of a step whose rows are stored before the first of them attends: all entries, or some rows of one.
struct StepPart {
  std::span<const StepEntry> entries = {};
  uint64_t firstRow = 0;  // of the step
  bool isWhole = true;
  // Of some rows: which entry of the step they belong to, and the row at which it begins.
  size_t entry = 0;
  uint64_t entryRow = 0;

  HeadsView viewOf(const HeadsView& view) const {
    return isWhole ? view : runsOf(view, firstRow, entries.front().rows, 1);
  }
};

// A CacheStep as the cache runs it: defaults are filled in, and each row has its place.
struct ResolvedStep {
  // What the step does with its tokens.
  enum class Kind : uint8_t { append, attend, appendAndAttend };

  Kind kind;
  const CacheStep& step;
  const RotaryStep* rotary = nullptr;  // that of the step, or a copy whose positions are those of the cache
  uint32_t window = 0;                 // of the step, or else of the cache
  std::span<const StepEntry> entries = {};

  bool appends() const { return kind != Kind::attend; }
  bool attends() const { return kind != Kind::append; }
  std::string_view call() const;
  // The operand whose tokens are divided among entries.
  const HeadsView& tokens() const { return appends() ? step.keys : step.queries; }
  bool isListed() const { return step.sequences.size() != 1 || step.rowCounts; }
  StepPart whole() const { return {.entries = entries}; }
};

// Sets the rotation of a part of a step that rotates. Positions after prefixes count their tokens. If canRotateAtOnce
// is false, that of the whole step lacks its positions and is only good for checking rules.
Result<void> setRotation(MultiRoPE& rotation, const ResolvedStep& step, const StepPart& part,
                         uint64_t prefixTokens = 0);
// The positions of that rotation.
RotaryPositions rotationPositions(const ResolvedStep& step, const StepPart& part, uint64_t prefixTokens = 0);
// Whether one dispatch can take the positions of all tokens.
bool canRotateAtOnce(const ResolvedStep& step);

// Adds positions and offsets that lie in tensors.
void addNumbers(std::vector<NamedRange>& sources, const RotaryStep& rotary);

// Some of the rows of a call, and the first of the positions at which they are used.
struct PlacedRows {
  uint32_t sequence = 0;
  uint64_t first = 0;  // row of the view
  uint64_t rows = 0;
  uint64_t position = 0;
};
// The rows of entries, each at the positions between its cursors; an entry that begins before its sequence is left out.
std::vector<PlacedRows> placedRows(std::span<const StepEntry> entries);

// The rows of a call of a cache. Checks that tokens which the step rotated by the next positions of a cache are used
// for what they were rotated for. Only what is known to be wrong is an error: memory that the step writes after a
// rotation may hold rotated tokens or others.
struct UsedRows {
  std::string_view call;
  const CommandEncoder& encoder;
  CacheCursors::Recording& recording;
  const CacheCursors& cache;
  std::vector<PlacedRows> placed;
  uint64_t latentDim = 0;  // of the cache

  // Keys that are appended were rotated for these tokens, if the step rotates rows for them at all.
  Result<void> checkKeys(const HeadsView& keys) const;
  // So were queries that attend, except for their latent part.
  Result<void> checkQueries(const HeadsView& queries) const;
  // They are rotated by this embedding, as all keys that the step has rotated for their sequences.
  Result<void> checkEmbedding(uint64_t embedding) const;
  // The step has not rotated them yet.
  Result<void> checkUnrotated(const HeadsView& tokens) const;
  // Positions that follow a cache are those at which the rows are appended.
  Result<void> checkFollowed(const RotaryPositions& positions) const;
  // What the step rotated for these sequences counts the tokens of prefixes.
  Result<void> checkOffsets(uint64_t prefixTokens) const;

 private:
  Result<void> checkLatent(const HeadsView& queries) const;
};

// The state of an AttentionCache, which its copies share.
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
