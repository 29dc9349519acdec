// The contract of KVCacheDequantize, as far as it is not that of all quantized caches.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "MLXNativeKernels/KVCacheDequantize.hpp"
#include "MLXNativeKernels/KVCacheWrite.hpp"
#include "Support/Rule.hpp"

namespace mnk {

std::span<const Rule<KVCacheDequantize>> kvCacheDequantizeRules();

// The first broken rule of all that apply.
Result<void> checkRules(const KVCacheDequantize& op);

// What is read: a plane of the cache and the tensor that it goes to, keys before values.
struct DequantizedPlane {
  QuantizedKVPlane from;
  Tensor into;
};
std::vector<DequantizedPlane> planesOf(const KVCacheDequantize& op);

// Its addresses: those of a write of the same tokens to the cache.
KVCacheWrite addressesOf(const KVCacheDequantize& op);

}  // namespace mnk
