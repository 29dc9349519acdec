// A small cache and tokens for it.
#pragma once
#include "Harness/Check.hpp"
#include "Harness/Golden.hpp"
#include "MLXNativeKernels/AttentionCache.hpp"

namespace mnk::test {

inline const AttentionCacheDescriptor kDescriptor{
    .kvHeads = 2, .headDim = 4, .capacity = 4, .sequences = 3, .whenFull = KVWrap::ring, .isStorageOnly = true};

inline AttentionCache makeCache(const std::shared_ptr<Device>& device,
                                AttentionCacheDescriptor descriptor = kDescriptor) {
  return REQUIRE(AttentionCache::make(device, descriptor));
}

inline Tensor tokens(const std::shared_ptr<Device>& device, uint64_t count, uint64_t heads = 2, uint64_t headDim = 4) {
  return REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make({count, heads, headDim}))));
}

inline Result<void> append(AttentionCache& cache, CommandEncoder& encoder, uint64_t count, uint32_t sequence = 0) {
  const Tensor source = tokens(encoder.device(), count);
  return cache.append(encoder, source, source, sequence);
}

// Appends with a separate encoder and waits.
inline void appendNow(AttentionCache& cache, const std::shared_ptr<Device>& device, uint64_t count,
                      uint32_t sequence = 0) {
  CommandEncoder encoder(device);
  REQUIRE(append(cache, encoder, count, sequence));
  REQUIRE(REQUIRE(encoder.commit()).wait());
}

}  // namespace mnk::test
