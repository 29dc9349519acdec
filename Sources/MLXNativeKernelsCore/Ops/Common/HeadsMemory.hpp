// The memory under a HeadsView: whether it lies in its tensor, and which bytes of it a kernel touches.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/HeadsView.hpp"

namespace mnk {

// Neighboring elements of every vector.
struct ElementRun {
  uint64_t begin = 0;
  uint64_t count = 0;
};

// Whether all vectors lie in the tensor. What follows asks for a view that does.
bool liesInside(const HeadsView& view);
// Whether two vectors share an element, as far as strides that grow from axis to axis can tell.
bool meetsItself(const HeadsView::Strides& strides);
// The largest power of two up to `most` that divides the address and all distances of vectors, in elements.
uint64_t elementAlignment(const HeadsView& view, uint64_t most);

// "at 0, strides 64, 32 and 8, in 640 elements", for errors.
std::string placesText(const HeadsView& view);

// From the first byte of the first vector to the last byte of the last.
MemoryRange rangeOf(const HeadsView& view);
uint64_t vectorCount(const HeadsView& view);
// Whether a vector of one shares a byte with a vector of the other, in the same space. Looks at all of them.
bool vectorsMeet(const HeadsView& a, const HeadsView& b);
uint64_t bytesOf(const HeadsView& view, std::span<const ElementRun> runs);
// Binds the memory from the first vector to the end of the last. The regions of many vectors at distances that do not
// fit together are more than those bytes.
Binding bindingOf(uint32_t index, const HeadsView& view, std::span<const ElementRun> runs, Access access);

}  // namespace mnk
