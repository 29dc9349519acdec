// The memory of a HeadsView: whether it is within its tensor, and which bytes a kernel touches.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"

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

}  // namespace mnk
