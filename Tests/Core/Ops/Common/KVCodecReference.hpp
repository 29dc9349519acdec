// What the codecs of KVCodec.hpp make of one vector, and what they read back, in double and in plain loops.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "MLXNativeKernels/KVCodec.hpp"

namespace mnk::test {

// How one vector is quantized. Without means or channel scales the spans are empty.
struct VectorCoding {
  KVCodec codec = {};
  uint32_t candidates = 1;
  KVScaleRule rule = KVScaleRule::unbiased;
  KVNonFinite nonFinite = KVNonFinite::zero;
  std::span<const float> means = {};
  std::span<const float> channelScales = {};
};

struct CodedVector {
  std::vector<double> rotated;
  std::vector<double> compared;  // what is compared with boundaries, where turbo does not look for a better size
  std::vector<uint32_t> codes;
  std::vector<uint64_t> scales;  // bits of the stored scales
  bool isNonFinite = false;
  bool isSaturated = false;

  bool isZero() const;
};

CodedVector encoded(const VectorCoding& coding, std::span<const double> vector);

// y_j = sum over i of (-1)^popcount(i & j) x_i. A length that is not a power of two has m blocks of the largest one
// that divides it: i and j count within blocks, and terms of the same block have the factor sqrt(m) - 2 / sqrt(m),
// others -2 / sqrt(m).
std::vector<double> hadamard(std::span<const double> x);
// H(s .* x) / sqrt(n), or x where the codec does not rotate.
std::vector<double> rotated(KVCodec::Name codec, std::span<const double> x);

std::vector<std::byte> packed(const KVCodec& codec, std::span<const uint32_t> codes);
std::vector<uint32_t> unpacked(const KVCodec& codec, uint64_t headDim, std::span<const std::byte> bytes);

// How well codes point in the vector's direction: 1 is best.
double cosineSquared(const KVCodec& codec, std::span<const double> rotated, std::span<const uint32_t> codes);
// The scale that turbo stores with codes, before it is rounded.
double turboScale(KVScaleRule rule, const KVCodec& codec, std::span<const double> rotated,
                  std::span<const uint32_t> codes);
// The bits that stand for a scale.
uint64_t scaleBits(const KVCodec& codec, double scale);

// What stored bytes and scales mean, in the rotated domain and in that of the vectors.
std::vector<double> decodedRotated(const KVCodec& codec, std::span<const uint32_t> codes,
                                   std::span<const uint64_t> scales);
std::vector<double> decoded(const VectorCoding& coding, std::span<const uint32_t> codes,
                            std::span<const uint64_t> scales);

}  // namespace mnk::test
