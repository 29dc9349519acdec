// The contract of FlashDecode.
#pragma once
#include <optional>
#include <span>

#include "MLXNativeKernels/FlashDecode.hpp"
#include "Support/Rule.hpp"

namespace mnk {

// Rules of dense caches; those of quantized caches are quantizedKVCacheRules.
std::span<const Rule<KVCacheView>> attendedCacheRules();
std::span<const Rule<FlashDecode>> flashDecodeRules();
// Subsets of the op's rules: queries, and how query heads map to heads of the cache.
std::span<const Rule<FlashDecode>> queryRules();
std::span<const Rule<FlashDecode>> headGroupRules();
// How sequences share the rows of queries.
std::span<const Rule<FlashDecode>> sequenceRowRules();
// Rules for the positions of sequences, without masks.
std::span<const Rule<FlashDecode>> flashDecodePositionRules();

// Returns the first violated rule.
Result<void> checkRules(const FlashDecode& op);

// Whether the matrix kernel supports this op, on a device that has matrices.
bool canUseMatrices(const FlashDecode& op);

}  // namespace mnk
