// Cache memory that the caller owns. Slots hold one position of every head:
//   headMajor   [heads, capacity, headDim]      or [sequences, heads, capacity, headDim]
//   tokenMajor  [capacity, heads, headDim]      or [sequences, capacity, heads, headDim]
// A linear cache keeps position p in slot p. A ring always keeps its first `pinned` positions, and the newest of the
// others: slot(p) = p < pinned ? p : pinned + (p - pinned) mod (capacity - pinned).
//
// In a latent cache (multi-head latent attention, MLA) the first `latentDim` elements of a key are also its value, and
// are stored once. `values` holds them, and `keys` the rest of each key; without `values`, `keys` holds whole keys.
#pragma once
#include <cstdint>
#include <optional>

#include "MLXNativeKernels/Tensor.hpp"

namespace mnk {

// Every extent is less: kernels count tokens, slots and heads in 32 bits and add two of them.
inline constexpr uint64_t kMaxKVExtent = uint64_t{1} << 31;

// Names the sequence of a cache that has one. Ops and calls on a cache with several sequences must name or list them.
inline constexpr uint32_t kOnlySequence = UINT32_MAX;

enum class KVLayout : uint32_t { headMajor, tokenMajor };
enum class KVWrap : uint32_t { linear, ring };

struct KVCacheView {
  Tensor keys;
  std::optional<Tensor> values = {};  // may have another headDim, otherwise the same as keys
  KVLayout layout = KVLayout::headMajor;
  KVWrap wrap = KVWrap::linear;
  uint32_t pinned = 0;
  uint32_t latentDim = 0;  // 0: keys and values are separate

  uint64_t sequences() const { return keys.shape().rank() == 4 ? keys.shape()[0] : 1; }
  uint64_t heads() const { return extent(layout == KVLayout::headMajor ? 3 : 2); }
  uint64_t capacity() const { return extent(layout == KVLayout::headMajor ? 2 : 3); }
  uint64_t headDim() const { return extent(1); }

  // Slots that a ring reuses; pinned slots come before them.
  uint64_t ringLength() const { return capacity() > pinned ? capacity() - pinned : 0; }
  uint64_t slotOf(uint64_t position) const;

 private:
  uint64_t extent(uint32_t fromEnd) const {
    const Shape& shape = keys.shape();
    return shape.rank() >= fromEnd ? shape[shape.rank() - fromEnd] : 0;
  }
};

}  // namespace mnk
