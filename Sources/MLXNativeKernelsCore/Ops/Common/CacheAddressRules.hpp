// What all writes to caches ask of their sources and addresses, whatever they store, and the numbers that rules and
// plans need for it. Ops that store something else than elements describe their addresses as a KVCacheWrite, too.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "MLXNativeKernels/KVCacheWrite.hpp"
#include "Support/Rule.hpp"

namespace mnk {

// Memory and ranks of the sources. Rules of the cache come between these and the next.
std::span<const Rule<KVCacheWrite>> cacheSourceRules();
// Sources whose heads are where the other layout has them. Rules of what fits into the cache come after them.
std::span<const Rule<KVCacheWrite>> cacheLayoutRules();
// Tokens, slots and rows.
std::span<const Rule<KVCacheWrite>> cacheAddressRules();
// Those of them about the sequence and the position of a write to one sequence.
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

// Source tokens to store, before a ring drops the oldest.
uint64_t tokenCount(const KVCacheWrite& op);

// A cache that has values, seen as a cache of these alone.
KVCacheView valuesOf(const KVCacheView& cache);

// Whether values, which the cache has, differ from keys in nothing but their head dim.
bool areValuesLikeKeys(const KVCacheView& cache);
// Whether a cache can pin as many slots as it asks for: none, or fewer than a ring has.
bool hasRoomForPinned(const KVCacheView& cache);
std::string pinnedText(const KVCacheView& cache);  // "2 pinned slots in a ring of 2"

}  // namespace mnk
