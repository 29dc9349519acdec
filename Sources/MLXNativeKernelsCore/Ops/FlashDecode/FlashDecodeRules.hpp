// The contract of FlashDecode.
#pragma once
#include <optional>
#include <span>

#include "MLXNativeKernels/FlashDecode.hpp"
#include "Support/Rule.hpp"

namespace mnk {

// Of caches of numbers that are attended to; those of quantized ones are quantizedKVCacheRules.
std::span<const Rule<KVCacheView>> attendedCacheRules();
std::span<const Rule<FlashDecode>> flashDecodeRules();
// Parts of these: what queries are, and how their heads share those of the cache.
std::span<const Rule<FlashDecode>> queryRules();
std::span<const Rule<FlashDecode>> headGroupRules();
// How sequences share the rows of queries.
std::span<const Rule<FlashDecode>> sequenceRowRules();
// And those about the positions of sequences, besides masks.
std::span<const Rule<FlashDecode>> flashDecodePositionRules();

// The first broken rule of all that apply.
Result<void> checkRules(const FlashDecode& op);

// Whether the matrix kernel can compute this, as far as the op is concerned.
bool canUseMatrices(const FlashDecode& op);

}  // namespace mnk
