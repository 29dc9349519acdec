// The vectors of heads: their memory, which operands must not share, and how the lanes of simdgroups share vectors.
#pragma once
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "Common/KVCodecTypes.h"
#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "MLXNativeKernels/KVCodec.hpp"

namespace mnk {

// Neighboring elements of every vector.
struct ElementRun {
  uint64_t begin = 0;
  uint64_t count = 0;
};

// Whether the layout is one that KVLayout names. Strides need none.
bool isLayoutKnown(const HeadsView& view);
// Whether all vectors are within the tensor. The functions below require this.
bool liesInside(const HeadsView& view);
// Whether two vectors may overlap. Interleaved axes count as overlapping.
bool overlapsItself(const HeadsView::Strides& strides);
// The largest power of two up to `most` that divides the address and all distances of vectors, in elements.
uint64_t elementAlignment(const HeadsView& view, uint64_t most);

// "at 0, strides 64, 32 and 8, in 640 elements", for errors.
std::string placesText(const HeadsView& view);

// From the first byte of the first vector to the last byte of the last.
MemoryRange rangeOf(const HeadsView& view);
uint64_t vectorCount(const HeadsView& view);
// Whether a vector of `a` shares a byte with a vector of `b` in the same memory space. Compares all vectors.
bool vectorsOverlap(const HeadsView& a, const HeadsView& b);
uint64_t bytesOf(const HeadsView& view, std::span<const ElementRun> runs);
// Binds the memory from the first vector to the end of the last. If many vectors have irregular distances, the declared
// regions cover more than the vectors.
Binding bindingOf(uint32_t index, const HeadsView& view, std::span<const ElementRun> runs, Access access);

// Whether operands of an op share memory, with the names that an error needs.
struct NamedRange {
  std::string_view name;
  MemoryRange range;
};
struct Overlap {
  NamedRange first;
  NamedRange second;

  std::string text() const;  // "keys overlapping the key cache"
};

// The first source that shares bytes with a target, or the first two targets that share bytes.
std::optional<Overlap> firstOverlap(std::span<const NamedRange> sources, std::span<const NamedRange> targets);
// Adds the indices of rows that lie in tensors.
void addRows(std::vector<NamedRange>& sources, const std::optional<KVCacheWrite::Rows>& rows);

// How the lanes of simdgroups share vectors for the Walsh-Hadamard transform: a lane holds a few float4s, the lanes of
// a vector are neighbors, and a simdgroup holds one vector or several short ones.

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
