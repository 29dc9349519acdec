// A small quantized cache, tokens for it, and its contents.
#pragma once
#include <vector>

#include "Cache/AttentionCacheFixture.hpp"
#include "Harness/Seeded.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"

namespace mnk::test {

inline AttentionCacheDescriptor turboDescriptor() {
  return {.kvHeads = 2,
          .headDim = 32,
          .valueHeadDim = 64,
          .capacity = 4,
          .sequences = 3,
          .whenFull = KVWrap::ring,
          .quantized = KVQuantizedStorage{.keyBits = 5, .valueBits = 3},
          .isStorageOnly = true};
}

// Quantizes only keys or only values; the other plane has elements of this dtype.
inline AttentionCacheDescriptor mixed(AttentionCacheDescriptor descriptor, KVQuantizedPlanes quantized,
                                      DType dtype = DType::f16) {
  descriptor.dtype = dtype;
  if (!descriptor.quantized) descriptor.quantized.emplace();
  descriptor.quantized->planes = quantized;
  return descriptor;
}

inline Tensor numbers(const std::shared_ptr<Device>& device, const std::vector<float>& elements, const Shape& shape) {
  const Tensor tensor = REQUIRE(Tensor::zeros(device, DType::f32, shape));
  REQUIRE(tensor.write(std::as_bytes(std::span(elements))));
  return tensor;
}

inline Tensor constants(const std::shared_ptr<Device>& device, float constant, uint64_t heads, uint64_t headDim) {
  return numbers(device, std::vector<float>(heads * headDim, constant), REQUIRE(Shape::make({heads, headDim})));
}

// Tokens of ordinary magnitude, all different.
inline Tensor someTokens(const std::shared_ptr<Device>& device, Seeded& random, uint64_t count, uint64_t heads,
                         uint64_t headDim) {
  std::vector<float> elements(count * heads * headDim);
  for (float& element : elements) element = static_cast<float>(static_cast<int64_t>(random.below(4001)) - 2000) / 500;
  return numbers(device, elements, REQUIRE(Shape::make({count, heads, headDim})));
}

// The same in another dtype; KVCacheWrite converts.
inline Tensor someTokens(const std::shared_ptr<Device>& device, Seeded& random, DType dtype, uint64_t count,
                         uint64_t heads, uint64_t headDim) {
  const Tensor numbers = someTokens(device, random, count, heads, headDim);
  const Tensor into = REQUIRE(Tensor::zeros(device, dtype, numbers.shape()));
  REQUIRE(CommandEncoder::run(
      device,
      [&](CommandEncoder& encoder) {
        return encoder.encode(KVCacheWrite{.keys = numbers, .into = {.keys = into, .layout = KVLayout::tokenMajor}});
      },
      "convert"));
  return into;
}

inline std::vector<std::byte> bytesOf(const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.byteCount());
  REQUIRE(tensor.read(bytes));
  return bytes;
}

inline std::vector<float> floatsOf(const Tensor& tensor) {
  std::vector<float> floats(tensor.shape().elementCount());
  REQUIRE(tensor.read(std::as_writable_bytes(std::span(floats))));
  return floats;
}

// Bytes of codes and scales, keys before values.
inline std::vector<std::byte> contents(const QuantizedKVCacheView& view) {
  std::vector<std::byte> all;
  for (const Tensor& tensor : {view.keys.codes, view.keys.scales, view.values->codes, view.values->scales}) {
    if (!tensor) continue;  // a dense plane has no scales
    const auto bytes = bytesOf(tensor);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}
// Bytes of all slots of a cache of any storage.
inline std::vector<std::byte> slotBytesOf(const AttentionCache& cache) {
  if (const auto quantized = cache.quantizedView()) return contents(*quantized);
  std::vector<std::byte> all = bytesOf(cache.view().keys);
  const auto values = bytesOf(*cache.view().values);
  all.insert(all.end(), values.begin(), values.end());
  return all;
}

}  // namespace mnk::test
