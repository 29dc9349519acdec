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

// The bytes of a cache of any storage: elements or codes of keys and of values, and the scales of codes.
struct CacheBytes {
  explicit CacheBytes(const AttentionCache& cache)
      : descriptor(cache.descriptor()), planes{bytesOf(cache.view().keys), bytesOf(*cache.view().values)} {
    const auto view = cache.quantizedView();
    if (view && !view->keys.isDense()) planes.push_back(bytesOf(view->keys.scales));
    if (view && !view->values->isDense()) planes.push_back(bytesOf(view->values->scales));
  }
  // Of all planes and heads.
  std::vector<std::byte> ofSlot(uint32_t sequence, uint64_t slot) const {
    const AttentionCacheDescriptor& d = descriptor;
    std::vector<std::byte> all;
    for (const std::vector<std::byte>& plane : planes) {
      const uint64_t slotBytes = plane.size() / d.sequences / d.kvHeads / d.capacity;
      for (uint64_t head = 0; head < d.kvHeads; ++head) {
        const auto at = plane.begin() +
                        static_cast<int64_t>(((uint64_t{sequence} * d.kvHeads + head) * d.capacity + slot) * slotBytes);
        all.insert(all.end(), at, at + static_cast<int64_t>(slotBytes));
      }
    }
    return all;
  }

  AttentionCacheDescriptor descriptor;
  std::vector<std::vector<std::byte>> planes;
};

}  // namespace mnk::test
