// What all writes to caches ask of their sources and addresses, whatever they store, and the numbers that rules and
// plans need for it. Ops that store something else than elements describe their addresses as a KVCacheWrite, too.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "MLXNativeKernels/KVCacheWrite.hpp"
#include "Support/Rule.hpp"

namespace mnk {

// Memory and ranks of the sources. Rules of the cache and of what fits into it come between these and the next.
std::span<const Rule<KVCacheWrite>> cacheSourceRules();
// Tokens, slots and rows.
std::span<const Rule<KVCacheWrite>> cacheAddressRules();

// The source as [heads, tokens, headDim] whatever its layout; zeros for a tensor of the wrong rank.
struct KVSourceShape {
  uint64_t heads = 0;
  uint64_t tokens = 0;
  uint64_t headDim = 0;
};
KVSourceShape sourceShape(const Tensor& tensor, KVLayout layout);
bool isOf(const Tensor& tensor, KVLayout layout, uint64_t heads, uint64_t headDim);
std::string_view layoutText(KVLayout layout);

std::string sourceText(const Tensor& tensor, KVLayout layout);  // "2 heads of 128 in token-major [3, 2, 128]"

// Source tokens to store, before a ring drops the oldest.
uint64_t tokenCount(const KVCacheWrite& op);

// A cache that has values, seen as a cache of these alone.
KVCacheView valuesOf(const KVCacheView& cache);

}  // namespace mnk
