// Rules of KVCacheDequantize, apart from those of all quantized caches.
#pragma once
#include <span>
#include <vector>

#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "Support/Errors.hpp"

namespace mnk {

std::span<const Rule<KVCacheDequantize>> kvCacheDequantizeRules();

// The first broken rule of all that apply.
Result<void> checkRules(const KVCacheDequantize& op);

// A plane of the cache to read and its result tensor. Keys come before values.
struct DequantizedPlane {
  QuantizedKVPlane from;
  Tensor into;
};
std::vector<DequantizedPlane> planesOf(const KVCacheDequantize& op);

// Its addresses: those of a write of the same tokens to the cache.
KVCacheWrite addressesOf(const KVCacheDequantize& op);

}  // namespace mnk
