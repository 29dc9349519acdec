// How the lanes of simdgroups share vectors that are turned by the Walsh-Hadamard transform: a lane holds a few
// float4s, lanes of a vector are neighbors, and a simdgroup holds one vector or several short ones.
#pragma once
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "Common/KVCodecTypes.h"
#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/HeadsView.hpp"
#include "MLXNativeKernels/QuantizedKVCacheView.hpp"

namespace mnk {

// For vectors of one length or of two: a lane holds as much of either.
struct VectorLanes {
  uint32_t chunks = 0;  // float4s of a lane

  static VectorLanes forLength(uint64_t longest);
  // For many vectors a lane holds up to 16 elements, so that lanes exchange fewer of them; few vectors are spread over
  // more lanes, to fill the device.
  static VectorLanes forVectors(uint64_t vectors, uint64_t longest, uint64_t shortest);
  static VectorLanes forPlanes(uint64_t vectors, const QuantizedKVPlane& first, const QuantizedKVPlane* second);
  // Whether the shorter vector is at least as long as what a lane holds.
  static bool canShare(uint64_t a, uint64_t b);

  // A power of two: the last lanes of a vector whose length is none hold nothing.
  uint32_t lanesOf(uint64_t length) const { return static_cast<uint32_t>(std::bit_ceil(length / (4 * chunks))); }
  uint32_t simdgroupsOf(uint64_t length, uint64_t vectors) const;
};

// What makes the transform of WalshHadamard.h orthonormal: 1 / (blocks * sqrt(length of a block)).
float inverseRootOf(uint64_t length);

// Threadgroups of a few simdgroups: so many simdgroups in all along x, and so many rows of them along y.
Grid gridOf(const VectorLanes& lanes, uint64_t simdgroups, uint64_t rows);

// What kernels of quantized caches are specialized for: one plane or two, and the numbers on their other side.
std::vector<FunctionConstant> codecConstants(const QuantizedKVPlane& first, const QuantizedKVPlane* second,
                                             const VectorLanes& lanes, std::span<const HeadsView> numbers);
// Whether the tensor starts where four of its elements can be loaded at once.
bool isAlignedToFour(const Tensor& tensor);
bool isAlignedTo16Bytes(const Tensor& tensor);

KVCodecPlane codecPlaneOf(const QuantizedKVPlane& plane, const VectorLanes& lanes, uint64_t heads);

}  // namespace mnk
