// Generated from Sources/API by generate.py: change the description instead.
// How vectors of a quantized cache are encoded, and views of such a cache.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Result.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk {

struct KVCodecSizes;

// How the vectors of a quantized cache are encoded. The meaning of a codec's bytes never changes.
//
// `KVCodec::Name::turbo` and `KVCodec::Name::mlx1` rotate a vector x of headDim elements,
//
//     r = H(s .* x) / sqrt(headDim)
//
// where H is the Walsh-Hadamard transform in natural order and s a fixed table of signs, and quantize each element of r
// to the index of a codebook value for numbers of variance 1. `Hadamard` is this rotation as an op.
struct KVCodec {
  // Which codec.
  enum class Name : uint32_t {
    // Head dims 32, 64, 80, 96, 112, 128, 192, 256 and 512, 2 to 8 bits, and one f16 scale for a vector.
    turbo,
    // The bytes of mlx-native 0.6.6 and later: 4 bits for powers of two from 4 to 4096; 5, 6 and 8 bits, a byte for
    // each code, for 256 and 512. Scales are f32, one for a vector, or one for each half of 512 elements.
    mlx1,
    // The bytes of mlx-native's `kv_quantize_v_no_fwht`, which writes values beside f16 keys: as `KVCodec::Name::mlx1`
    // with 5, 6 or 8 bits, but vectors are not rotated. An outlier therefore coarsens the rest of its vector.
    mlx1Unrotated,
    // The bytes of mlx-native's `hadamard_quantize_kv_affine4`: 4 bits for 256 and 512, evenly spaced values instead of
    // a codebook, no signs, and one f32 scale for a vector.
    mlx1Affine4,
  };

  // Which codec.
  Name name = Name::turbo;
  // Bits of one code: 2 to 8 for `KVCodec::Name::turbo`; 4, 5, 6 or 8 for `KVCodec::Name::mlx1`; 5, 6 or 8 for
  // `KVCodec::Name::mlx1Unrotated`; 4 for `KVCodec::Name::mlx1Affine4`.
  uint32_t bits = 4;
  // What `KVCodec::Name::mlx1` and `KVCodec::Name::mlx1Unrotated` multiply elements by before they are quantized, at a
  // head dim of 512.
  float scaleFactor = 1;

  // Whether the codec supports these bits and this head dim.
  bool canQuantize(uint64_t headDim) const;
  // Whether the scale factor can be used: 1 always, others from 1e-6 to 1e6 with mlx1 and mlx1Unrotated at 512.
  bool canScale(uint64_t headDim) const;
  // Whether each code takes a byte; others are packed.
  bool hasByteCodes() const;
  DType scaleType() const;
  std::string text() const;  // "turbo of 4 bits"

  bool operator==(const KVCodec&) const = default;
};

// The scale that turbo stores for a vector r whose codes represent the codebook values c.
enum class KVScaleRule : uint32_t {
  // `<r, r> / <r, c>`: keeps the vector's component along itself, so that scores do not shrink.
  unbiased,
  // `<r, c> / <c, c>`: minimizes the error of the vector.
  leastSquares,
};

// What is stored for a vector that holds a NaN or an infinity.
enum class KVNonFinite : uint32_t {
  // A scale that is NaN, so that what is computed with the vector is NaN.
  propagate,
  // Zero.
  zero,
};

// In which domain vectors are read back.
enum class KVDomain : uint32_t {
  // That of the vectors which were stored: rotated back, channel scales and means undone.
  original,
  // That of the codes: scale times codebook value, as attention reads it. `Hadamard` takes a query there. A plane that
  // holds elements has one domain, the original.
  rotated,
};

// How vectors are quantized where the format allows a choice. Readers do not need it.
struct KVQuantizeOptions {
  // How many sizes of a vector turbo tries, 1, 5 or 17, to keep the codes whose direction is nearest to the vector's.
  uint32_t candidates = 5;
  // The scale of a key.
  KVScaleRule keyScale = KVScaleRule::unbiased;
  // The scale of a value.
  KVScaleRule valueScale = KVScaleRule::leastSquares;
  // What is stored for a vector that holds a NaN or an infinity.
  KVNonFinite nonFinite = KVNonFinite::propagate;

  bool hasSearch() const { return candidates == 1 || candidates == 5 || candidates == 17; }
  bool areKnown() const {
    return keyScale <= KVScaleRule::leastSquares && valueScale <= KVScaleRule::leastSquares &&
           nonFinite <= KVNonFinite::zero;
  }

  bool operator==(const KVQuantizeOptions&) const = default;
};

// Codes and scales of keys, or of values, in memory that the caller owns.
//
// Shapes, where the first axis may be left out for a single sequence, and where scales have a last axis of 2 if a
// vector has two of them:
// - head-major: codes `[sequences, heads, capacity, codeBytes]`, scales `[sequences, heads, capacity]`
// - token-major: codes `[sequences, capacity, heads, codeBytes]`, scales `[sequences, capacity, heads]`
//
// What is quantized is `(x - means) .* channelScales`. For keys this is free: a mean that all keys of a head share adds
// the same number to all scores of a query, and dividing queries by the channel scales leaves scores unchanged. A mean
// of values is added to the result of attention.
//
// One of keys and values may be dense: elements of f32, f16 or bf16, with `headDim` instead of `codeBytes`, and without
// scales.
struct QuantizedKVPlane {
  // The codec; ignored for dense vectors.
  KVCodec codec = {};
  // Codes, u8, or the elements of dense vectors.
  Tensor codes;
  // Scales, f16 for turbo, otherwise f32; none for dense vectors.
  Tensor scales;
  // Subtracted from vectors before they are quantized: f32, `[heads, headDim]`. Turbo only.
  std::optional<Tensor> means = {};
  // Multiplies the difference: f32, `[heads, headDim]`, none of them 0. Keys of turbo only.
  std::optional<Tensor> channelScales = {};

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

// Memory of a quantized cache that the caller owns. Slots are those of a `KVCacheView`.
struct QuantizedKVCacheView {
  // Memory of the keys.
  QuantizedKVPlane keys;
  // Memory of the values, which may have other bits and another head dim; none for keys only.
  std::optional<QuantizedKVPlane> values = {};
  // The order of axes.
  KVLayout layout = KVLayout::headMajor;
  // Where positions beyond the last slot go.
  KVWrap wrap = KVWrap::linear;
  // First positions that a ring never overwrites.
  uint32_t pinned = 0;
  // The length of values that are the first part of keys, in a latent cache; 0 if keys and values are separate.
  uint32_t latentDim = 0;

  // Codes as a cache of bytes, or elements as they are: its sequences, heads, capacity and slots are this cache's.
  KVCacheView codes() const;
  // Of keys, or of values if keys are dense.
  KVCodec::Name codecName() const { return keys.isDense() && values ? values->codec.name : keys.codec.name; }
};

// All fields except tensors: plans depend on every one.
inline auto numbersOf(const KVQuantizeOptions& from) {
  const auto& [candidates, keyScale, valueScale, nonFinite] = from;
  return std::tie(candidates, keyScale, valueScale, nonFinite);
}

}  // namespace mnk
