// Memory of a quantized cache that the caller owns: codes and scales of keys, and of values, if any. One of the two may
// be dense instead, as in a KVCacheView: elements of f32, f16 or bf16 instead of codes.
//   headMajor   codes u8 [heads, capacity, codeBytes], scales [heads, capacity], or [heads, capacity, 2] where a vector
//               has two
//   tokenMajor  the same with capacity before heads
// each with an axis of sequences before them, or without. Slots are those of a KVCacheView.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "MLXNativeKernels/KVCacheView.hpp"
#include "MLXNativeKernels/KVCodec.hpp"
#include "MLXNativeKernels/Result.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk {

// Keys or values. What is quantized is (x - means) .* channelScales. For keys this is free: a mean that all keys of a
// head share adds the same number to all scores of a query, and dividing queries by the channel scales leaves scores
// unchanged. A mean of values is added to the result of attention. Only turbo has means and channel scales.
struct QuantizedKVPlane {
  KVCodec codec = {};                        // ignored in a dense plane
  Tensor codes;                              // u8, or the elements of a dense plane
  Tensor scales;                             // f16 for turbo, otherwise f32; none of a dense plane
  std::optional<Tensor> means = {};          // f32 [heads, headDim]
  std::optional<Tensor> channelScales = {};  // f32 [heads, headDim], none of them 0; keys only

  // New memory, in which every vector is zero; without sequences there is no axis of them.
  static Result<QuantizedKVPlane> zeros(const std::shared_ptr<Device>& device, const KVCodec& codec, uint64_t heads,
                                        uint64_t headDim, uint64_t capacity, std::optional<uint64_t> sequences = {},
                                        KVLayout layout = KVLayout::headMajor);
  // The same, for vectors that are written before they are read: all bytes are undefined.
  static Result<QuantizedKVPlane> undefined(const std::shared_ptr<Device>& device, const KVCodec& codec, uint64_t heads,
                                            uint64_t headDim, uint64_t capacity, std::optional<uint64_t> sequences = {},
                                            KVLayout layout = KVLayout::headMajor);

  bool isDense() const { return codes && isFloat(codes.dtype()); }
  uint64_t headDim() const;          // 0 where codes are of no length that the codec has
  KVCodecSizes vectorSizes() const;  // of a plane with a head dim; elements of a dense one count as codes
};

struct QuantizedKVCacheView {
  QuantizedKVPlane keys;
  std::optional<QuantizedKVPlane> values = {};  // may have other bits and another headDim, otherwise the same as keys
  KVLayout layout = KVLayout::headMajor;
  KVWrap wrap = KVWrap::linear;
  uint32_t pinned = 0;
  uint32_t latentDim = 0;  // of a latent cache, as in KVCacheView: values are the first elements of keys

  // Codes as a cache of bytes, or elements as they are: its sequences, heads, capacity and slots are this cache's.
  KVCacheView codes() const;
  // Of keys, or of values if keys are dense.
  KVCodecName codecName() const { return keys.isDense() && values ? values->codec.name : keys.codec.name; }
};

// The extents of a quantized cache.
struct QuantizedCacheExtents {
  KVCodec keys = {};
  uint64_t headDim = 0;
  std::optional<KVCodec> values = {};
  uint64_t valueHeadDim = 0;
  uint64_t heads = 0;
  uint64_t capacity = 0;
  uint64_t sequences = 1;
};
// Codes and scales of all its keys and values together.
Result<uint64_t> quantizedCacheBytes(const QuantizedCacheExtents& extents);

}  // namespace mnk
