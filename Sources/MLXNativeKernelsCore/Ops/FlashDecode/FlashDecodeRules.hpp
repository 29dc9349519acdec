// The contract of FlashDecode: rules of its queries and its cache, then those of the shape that both have.
#pragma once
#include <span>

#include "Ops/FlashDecode/AttentionShape.hpp"
#include "Support/Errors.hpp"

namespace mnk {

std::span<const Rule<HeadsView>> queryRules();
// Rules of dense caches; those of quantized caches are quantizedKVCacheRules.
std::span<const Rule<KVCacheView>> attendedCacheRules();
std::span<const Rule<AttentionShape>> attentionRules();
// Subsets of these: how query heads map to heads of the cache, and how sequences share the rows of queries.
std::span<const Rule<AttentionShape>> headGroupRules();
std::span<const Rule<AttentionShape>> sequenceRowRules();
// Rules for the positions of sequences, without masks.
std::span<const Rule<AttentionShape>> attentionPositionRules();

// Checks the rules of queries and cache.
Result<void> checkAttendedCache(const FlashDecode& op);

}  // namespace mnk
