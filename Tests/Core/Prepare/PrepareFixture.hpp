// Caches to prepare for, and what runs over them.
#pragma once
#include <cmath>

#include "Harness/TimedDevice.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"

namespace mnk::test {

inline constexpr uint32_t kPreparedHeads = 8;  // of the cache
inline constexpr uint32_t kPreparedDim = 128;

inline AttentionCache preparedCache(const std::shared_ptr<Device>& device, uint32_t capacity = 4096,
                                    bool isCoded = false) {
  AttentionCacheDescriptor descriptor{.kvHeads = kPreparedHeads, .headDim = kPreparedDim, .capacity = capacity};
  if (isCoded) descriptor.quantized = KVQuantizedStorage{};
  return REQUIRE(AttentionCache::make(device, descriptor));
}

inline FlashDecode attentionOver(const AttentionCache& cache, const std::shared_ptr<Device>& device,
                                 uint64_t queryHeads, uint64_t length, uint64_t rows = 1) {
  const AttentionCacheDescriptor& d = cache.descriptor();
  const auto tensor = [&](uint64_t dim) {
    return REQUIRE(Tensor::zeros(device, DType::f16, REQUIRE(Shape::make({1, rows, queryHeads, dim}))));
  };
  FlashDecode op{.queries = tensor(d.latentDim + d.headDim),
                 .cache = cache.view(),
                 .sequences = {{0, length}},
                 .results = {.output = tensor(d.valueHeadDim)}};
  if (const auto quantized = cache.quantizedView()) op.cache = *quantized;
  if (d.latentDim != 0) op.options.scale = 0.125f;
  return op;
}

inline FlashDecodeChoice choiceFor(const FlashDecode& op, Device& device) {
  return TimedDevice::choiceOf(REQUIRE(plan(op, device)).dispatches.front());
}

}  // namespace mnk::test
