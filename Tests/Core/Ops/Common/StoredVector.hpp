// What a quantized cache holds for one vector, and whether it is what the reference asks for.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "Harness/Seeded.hpp"
#include "MLXNativeKernels/Device.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/Common/OperandMemory.hpp"

namespace mnk::test {

struct StoredVector {
  std::vector<std::byte> bytes;
  std::vector<uint64_t> scales;  // bits
  bool operator==(const StoredVector&) const = default;
};

// What a plane of codes holds.
class PlaneContents {
 public:
  PlaneContents(const QuantizedKVPlane& plane, const ReadTensor& read);

  uint64_t rows() const { return codes_.size() / size_.codeBytes; }
  StoredVector vector(uint64_t row) const;
  // Its codec, and the means and channel scales of a head, as long as these contents live.
  VectorCoding coding(uint64_t head) const;

 private:
  KVCodec codec_;
  uint64_t headDim_;
  KVCodecSizes size_;
  std::vector<std::byte> codes_, scales_;
  std::vector<float> means_, channelScales_;
};

// Why the vector is stored wrongly; empty where it is right. Floats may decide otherwise than the reference for
// elements within 4e-6 of a boundary, of vectors with a root mean square of 1, and f32 may be 4 units of its last digit
// away. A scale fits the codes that are stored. Where turbo looks for a better size, codes may be any that are as good.
std::string fault(const VectorCoding& coding, const CodedVector& expected, const StoredVector& got);

struct StoredVectors {
  std::vector<StoredVector> vectors;
  std::array<uint32_t, 2> counts = {};  // as KVCacheQuantize counts
};

// f32 vectors, stored as the keys of one head.
StoredVectors stored(const std::shared_ptr<Device>& device, const VectorCoding& coding,
                     const std::vector<std::vector<float>>& vectors);

// The squares of all differences, in relation to those of what is expected.
double relativeSquares(std::span<const double> got, std::span<const double> expected);

// Elements of the normal distribution.
std::vector<float> normalVector(Seeded& random, uint64_t headDim);
std::vector<double> widened(const std::vector<float>& vector);

}  // namespace mnk::test
