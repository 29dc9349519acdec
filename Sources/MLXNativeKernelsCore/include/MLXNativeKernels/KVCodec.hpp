// How the vectors of a quantized cache are encoded. The meaning of a codec's bytes never changes.
//
// turbo and mlx1 rotate a vector, r = H(s .* x) / sqrt(headDim), where H is the Walsh-Hadamard transform in natural
// order and s a fixed table of signs, and quantize each element of r to the index of a codebook value for numbers of
// variance 1: the number of boundaries between codebook values below the element divided by the vector's root mean
// square. An element on a boundary gets the lower index. With N = 2^bits codebook values, zero is index N / 2 - 1.
//
//   turbo  Head dims 32, 64, 80, 96, 112, 128, 192, 256 and 512, 2 to 8 bits, signs for each head dim. One f16 scale
//          for each vector: r is read as scale * codebook value. Codes are packed in bit planes by the binary digits of
//          `bits`, the widest first: 5 bits are a plane of the low 4 and a plane of the high 1. A plane of w bits holds
//          code j from its bit j * w on, low bits first. A row of codes takes bits * headDim / 8 bytes.
//          A head dim that is not a power of two has m blocks of the largest power of two that divides it: 5 of 16, 3
//          of 32, 7 of 16 and 3 of 64. Each block is transformed, x_b = H(s .* x)_b / sqrt(its length), and then the
//          blocks are reflected: r_b = x_b - 2 / m * (x_0 + ... + x_m-1). This spreads an outlier over the whole
//          vector, as at a power of two. Except for the signs, this rotation is its own inverse.
//          With 2 and 4 bits, the codebook is the best for normal numbers. With 3 and 5 to 8 bits, it is the best whose
//          values follow factor * t * ((t * t + a)^2 + b), where t = (2 * code + 1) / N - 1, so that attention can
//          compute them. Shaders/Common/TurboTables.h has the numbers.
//   mlx1   The bytes of mlx-native 0.6.6 and later. 4 bits, two codes a byte, low half first, for powers of two from 4
//          to 4096; 5, 6 and 8 bits, one code a byte, for 256 and 512. Signs only at 256 and 512. f32 scales: the norm
//          of r, or at 512 the root mean square of each half of r, which is read as scale / scaleFactor * codebook
//          value.
//          From 1024 on there is one scale, because mlx-native's kernel writes one, although its host code asks for
//          more.
//   mlx1Unrotated
//          The bytes of mlx-native's kv_quantize_v_no_fwht, which writes values beside f16 keys. As mlx1 with 5, 6 or 8
//          bits, but r = x: neither signs nor transform. An outlier therefore coarsens the rest of its vector.
//   mlx1Affine4
//          The bytes of mlx-native's hadamard_quantize_kv_affine4: 4 bits packed as those of mlx1, for 256 and 512, no
//          signs, and 16 evenly spaced values instead of a codebook. With a = max |r|, the code is floor(7.5 r / a +
//          8). An f32 scale, one also at 512, is a sqrt(headDim) / 7.5; r is read as scale / sqrt(headDim) * (code
//          - 7.5).
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "MLXNativeKernels/Generated/QuantizedViews.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk {

std::string_view name(KVCodec::Name codec);

// The sizes of one vector.
struct KVCodecSizes {
  uint64_t codeBytes = 0;
  uint64_t scales = 0;
  uint64_t scaleBytes = 0;  // of all scales together

  uint64_t byteCount() const { return codeBytes + scaleBytes; }
};
Result<KVCodecSizes> sizes(const KVCodec& codec, uint64_t headDim);
// The head dim whose codes take this many bytes; 0 if there is none.
uint64_t headDimOf(const KVCodec& codec, uint64_t codeBytes);

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
