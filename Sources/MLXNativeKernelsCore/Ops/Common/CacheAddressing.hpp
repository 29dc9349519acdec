// Maps source tokens to cache slots, as byte regions and as kernel parameters. This is the part of a cache write that
// does not depend on what is stored; ops that do not store elements also describe their addresses as a KVCacheWrite.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "Common/CacheAddressTypes.h"
#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "Runtime/RepeatedOp.hpp"
#include "Support/Errors.hpp"

namespace mnk {

// Destinations of listed rows. A row whose slot a later row overwrites gets a sequence that the cache does not have,
// and the kernel skips it.
struct ListedRows {
  std::vector<uint32_t> sequences;
  std::vector<uint32_t> positions;

  static constexpr uint32_t kNowhere = UINT32_MAX;
};

// Which tokens are stored, and in which slots. A ring keeps pinned positions and the newest others. The tokens in
// between are dropped here, so that every slot has one writer however long the write is.
struct Placement {
  uint64_t pinnedTokens = 0;
  uint64_t pinnedSlot = 0;
  uint64_t skippedTokens = 0;
  uint64_t otherTokens = 0;
  uint64_t firstSlot = 0;
  std::optional<ListedRows> rows = {};  // of an op that lists its rows, unless tensors hold the list

  uint64_t stored() const { return pinnedTokens + otherTokens; }
};
Placement placementOf(const KVCacheWrite& op);

// Consecutive tokens of a source or slots of a cache.
struct SlotRun {
  uint64_t begin = 0;
  uint64_t count = 0;

  bool operator==(const SlotRun&) const = default;
};
// At most four runs: pinned and other slots, each of which may wrap around once.
class SlotRuns {
 public:
  void add(SlotRun run) {
    if (run.count != 0) runs_[count_++] = run;
  }
  const SlotRun* begin() const { return runs_.data(); }
  const SlotRun* end() const { return runs_.data() + count_; }

 private:
  std::array<SlotRun, 4> runs_ = {};
  size_t count_ = 0;
};
// The extents and strides of a cache.
struct SlotExtents {
  uint64_t sequences = 0;
  uint64_t heads = 0;
  uint64_t capacity = 0;
  KVLayout layout = KVLayout::headMajor;
  KVWrap wrap = KVWrap::linear;
  uint64_t pinned = 0;

  static SlotExtents of(const Tensor& plane, KVLayout layout, KVWrap wrap, uint64_t pinned);
  static SlotExtents of(const KVCacheView& view) { return of(view.keys, view.layout, view.wrap, view.pinned); }
};
// Adds the regions of slots of one sequence, for all heads of a cache whose vectors take `rowBytes` bytes.
void addSlotRegions(std::vector<Region>& regions, const SlotExtents& cache, uint64_t sequence, const SlotRuns& slots,
                    uint64_t rowBytes);

// An op's addresses, worked out once for all of its planes.
struct CacheAddressing {
  KVCacheWrite op;
  Placement placement;

  explicit CacheAddressing(KVCacheWrite of);

  // For a kernel that loads this number of source elements at a time.
  CacheAddressParams params(uint64_t unitElements = 1) const;
  // Binds keys or values, as the op reads them, and declares the tokens that are stored.
  Binding sourceBinding(uint32_t index, const HeadsView& source, Access access) const;
  // The bytes of the cache that are written, for rows of this size.
  std::vector<Region> cacheRegions(uint64_t rowBytes) const;
  // If rows come from tensors, their slots are unknown: any byte of the cache may be written, although few rows are.
  bool isAnywhere() const { return op.rows && !placement.rows; }
  // If the slots are unknown, counts the bytes that a plane actually receives.
  void countWritten(Dispatch& dispatch, uint64_t rowBytes) const;
  void bindRows(Dispatch& dispatch, uint32_t sequencesIndex, uint32_t positionsIndex) const;
  // The constants of the kernels' addresses.
  std::vector<FunctionConstant> constants() const;
};

// A repeated write: its form, and the parts of its dispatch that depend on positions. Returns false if tensors hold the
// rows, because such a write is not cached.
template <typename Write>  // KVCacheWrite or KVCacheQuantize
[[nodiscard]] bool describeAddresses(const Write& op, OpForm& form) {
  form.add(op.sourceLayout);
  form.add(op.sourceOffset);
  form.add(op.tokens.has_value());
  form.add(op.tokens.value_or(0));
  form.add(op.sourceIsRing);
  form.add(op.into.layout);
  form.add(op.into.wrap);
  form.add(op.into.pinned);
  form.add(op.rows.has_value());
  if (!op.rows) return true;
  const auto* sequences = std::get_if<std::vector<uint32_t>>(&op.rows->sequences);
  const auto* positions = std::get_if<std::vector<uint32_t>>(&op.rows->positions);
  if (!sequences || !positions) return false;
  form.add(sequences->size());
  form.add(positions->size());
  return true;
}
template <typename Write>
void addWritePositions(OpPositions& positions, const Write& op) {
  if (!op.rows) return positions.add(op.sequence, op.position);
  for (const RowIndices* indices : {&op.rows->sequences, &op.rows->positions}) {
    const auto* list = std::get_if<std::vector<uint32_t>>(indices);
    if (!list) continue;
    for (const uint32_t number : *list) positions.add(number);
  }
}
void refineAddresses(const KVCacheWrite& op, OpForm& form);
void patchAddresses(const KVCacheWrite& op, const Placement& placement, CacheAddressParams& params);
void patchRows(const Placement& placement, uint32_t sequencesIndex, uint32_t positionsIndex, Dispatch& dispatch);
void patchCacheRegions(const KVCacheWrite& op, const Placement& placement, uint64_t rowBytes, Binding& binding);

// Rules for the sources and addresses of all cache writes, whatever they store, and the numbers that rules and plans
// need. Ops that do not store elements also describe their addresses as a KVCacheWrite.

// Rules for memory and rank of the sources. The rules of the cache are checked after these and before cacheLayoutRules.
std::span<const Rule<KVCacheWrite>> cacheSourceRules();
// Rejects sources that are in the other layout. The rules for what fits into the cache are checked after these.
std::span<const Rule<KVCacheWrite>> cacheLayoutRules();
// Tokens, slots and rows.
std::span<const Rule<KVCacheWrite>> cacheAddressRules();
// The subset for sequences and positions.
std::span<const Rule<KVCacheWrite>> cachePositionRules();

// A source as the op reads it: head-major if the view or the op says so.
HeadsView sourceOf(const HeadsView& view, KVLayout layout);
// Where its vectors lie; zeros for a tensor of the wrong rank.
HeadsView::Strides sourceShape(const HeadsView& view, KVLayout layout);
bool isOf(const HeadsView& view, KVLayout layout, uint64_t heads, uint64_t headDim);
std::string_view layoutText(KVLayout layout);

// "2 heads of 128 in token-major [3, 2, 128]"
std::string sourceText(const HeadsView& view, KVLayout layout);
bool isOfSameTokens(const HeadsView& a, const HeadsView& b, KVLayout layout);
std::string tokensText(const HeadsView& view, KVLayout layout);  // "3 tokens", or "2 x 3 tokens" of two sequences

bool isSequenceOf(uint64_t sequence, uint64_t sequences);  // also kOnlySequence, of a single one
std::string sequenceText(uint64_t sequence);               // "sequence 7" or "no sequence"
// The number of a sequence that passed this check.
constexpr uint64_t numberOf(uint64_t sequence) {
  return sequence == kOnlySequence ? 0 : sequence;
}

// Source tokens to store, before a ring drops the oldest.
uint64_t tokenCount(const KVCacheWrite& op);
// Without tokens, or in a cache without heads or sequences.
bool storesNothing(const KVCacheWrite& op);

// A cache that has values, seen as a cache of these alone.
KVCacheView valuesOf(const KVCacheView& cache);

// Whether the cache's values match its keys except for the head dim.
bool areValuesLikeKeys(const KVCacheView& cache);
// Whether the number of pinned slots is valid: none, or fewer than the capacity of a ring.
bool hasRoomForPinned(const SlotExtents& cache);
std::string pinnedText(const SlotExtents& cache);  // "2 pinned slots in a ring of 2"

}  // namespace mnk
