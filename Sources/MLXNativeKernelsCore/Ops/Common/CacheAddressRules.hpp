// Rules for the sources and addresses of all cache writes, whatever they store, and the numbers that rules and plans
// need. Ops that do not store elements also describe their addresses as a KVCacheWrite.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "Ops/Common/CacheAddressing.hpp"
#include "Support/Errors.hpp"

namespace mnk {

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
