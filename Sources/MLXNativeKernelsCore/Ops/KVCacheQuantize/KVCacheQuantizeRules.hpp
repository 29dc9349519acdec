// Rules of KVCacheQuantize, apart from those of all cache writes and of all quantized caches.
#pragma once
#include <optional>
#include <span>

#include "MLXNativeKernels/KVCacheQuantize.hpp"
#include "Support/Rule.hpp"

namespace mnk {

// Its own rules: what fits into the cache, and after the rules of addresses, what shares memory.
std::span<const Rule<KVCacheQuantize>> kvCacheQuantizeRules();
std::span<const Rule<KVCacheQuantize>> kvCacheQuantizeOverlapRules();

// The first broken rule of all that apply.
Result<void> checkRules(const KVCacheQuantize& op);

// Its sources and addresses, with codes as the cache.
KVCacheWrite addressesOf(const KVCacheQuantize& op);

}  // namespace mnk
