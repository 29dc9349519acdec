// How the lanes of simdgroups share vectors for the Walsh-Hadamard transform: a lane holds a few float4s, the lanes of
// a vector are neighbors, and a simdgroup holds one vector or several short ones.
#pragma once
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "Common/KVCodecTypes.h"
#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/KVCodec.hpp"

namespace mnk {

// For vectors of one or two lengths. A lane holds the same number of elements of either.
struct VectorLanes {
  uint32_t chunks = 0;  // float4s of a lane

  static VectorLanes forLength(uint64_t longest);
  // With many vectors, a lane holds up to 16 elements, which saves shuffles. Few vectors are spread over more lanes, to
  // fill the device.
  static VectorLanes forVectors(uint64_t vectors, uint64_t longest, uint64_t shortest);
  static VectorLanes forPlanes(uint64_t vectors, const QuantizedKVPlane& first, const QuantizedKVPlane* second);
  // Whether the shorter vector is at least as long as what a lane holds.
  static bool canShare(uint64_t a, uint64_t b);

  // A power of two. If the length is not one, the last lanes hold nothing.
  uint32_t lanesOf(uint64_t length) const { return static_cast<uint32_t>(std::bit_ceil(length / (4 * chunks))); }
  uint32_t simdgroupsOf(uint64_t length, uint64_t vectors) const;
};

// What makes the transform of WalshHadamard.h orthonormal: 1 / (blocks * sqrt(length of a block)).
float inverseRootOf(uint64_t length);

// A grid of small threadgroups with `simdgroups` simdgroups in total along x, and `rows` rows of them along y.
Grid gridOf(const VectorLanes& lanes, uint64_t simdgroups, uint64_t rows);

// Function constants for kernels of quantized caches: one or two planes, and the tensors outside the cache.
std::vector<FunctionConstant> codecConstants(const QuantizedKVPlane& first, const QuantizedKVPlane* second,
                                             const VectorLanes& lanes, std::span<const HeadsView> numbers);
// Whether the tensor starts where four of its elements can be loaded at once.
bool isAlignedToFour(const Tensor& tensor);
bool isAlignedTo16Bytes(const Tensor& tensor);

KVCodecPlane codecPlaneOf(const QuantizedKVPlane& plane, const VectorLanes& lanes, uint64_t heads);

}  // namespace mnk
