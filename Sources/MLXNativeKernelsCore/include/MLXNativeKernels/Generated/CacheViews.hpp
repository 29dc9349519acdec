// Generated from Sources/API by generate.py: change the description instead.
// Views of vectors of heads and of caches, in memory that the caller owns.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>

#include "MLXNativeKernels/Result.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk {

// Every extent is less: kernels count tokens, slots and heads in 32 bits and add two of them.
inline constexpr uint64_t kMaxKVExtent = uint64_t{1} << 31;

// Names the sequence of a cache that has one. Ops and calls on a cache with several sequences must name or list them.
inline constexpr uint32_t kOnlySequence = UINT32_MAX;

// The order of axes in memory that holds keys or values.
enum class KVLayout : uint32_t {
  // Heads outside, tokens inside: `[heads, tokens, headDim]`.
  headMajor,
  // Tokens outside, heads inside: `[tokens, heads, headDim]`.
  tokenMajor,
};

// Where positions beyond the last slot go.
enum class KVWrap : uint32_t {
  // An error: position p is in slot p, and there is no slot beyond the capacity.
  linear,
  // Around: the newest positions take the slots of the oldest.
  ring,
};

// Vectors of `headDim` elements, one for every sequence, token and head, in a tensor's memory.
//
// By the tensor's shape, where the sequences may be left out:
// - token-major: `[sequences, tokens, heads, headDim]`, or `[heads, headDim]` for one token
// - head-major: `[sequences, heads, tokens, headDim]`
//
// or with any strides, such as in some columns of a fused projection. The elements of a vector are contiguous.
struct HeadsView {
  // Counts of vectors, and the distances between them in elements. A stride of 0 reads the same vectors again.
  struct Strides {
    // How many sequences there are.
    uint64_t sequences = 1;
    // Tokens of one sequence.
    uint64_t tokens = 1;
    // Heads of one token.
    uint64_t heads = 1;
    // Elements of one head.
    uint64_t headDim = 0;
    // The offset of the first element in the tensor.
    uint64_t offset = 0;
    // From one sequence to the next.
    uint64_t sequenceStride = 0;
    // From one token to the next.
    uint64_t tokenStride = 0;
    // From one head to the next.
    uint64_t headStride = 0;

    uint64_t totalTokens() const { return sequences * tokens; }

    bool operator==(const Strides&) const = default;
  };

  // The memory.
  Tensor tensor;
  // The order of its axes.
  KVLayout layout = KVLayout::tokenMajor;
  // If there are any, they replace the tensor's shape and the layout.
  std::optional<Strides> strides = {};

  HeadsView() = default;
  HeadsView(Tensor tensor, KVLayout layout = KVLayout::tokenMajor) : tensor(std::move(tensor)), layout(layout) {}
  HeadsView(Tensor tensor, const Strides& strides) : tensor(std::move(tensor)), strides(strides) {}
  // Heads side by side in the columns of a [tokens, width] or [sequences, tokens, width] tensor, as a fused projection
  // leaves them.
  static Result<HeadsView> columns(const Tensor& tensor, uint64_t firstColumn, uint64_t heads, uint64_t headDim);

  // Whether there are strides, or the tensor has a rank that this layout reads.
  bool isReadable() const;
  // The locations of the vectors; all counts are 0 if the tensor has another rank.
  Strides resolved() const { return resolvedAs(layout); }
  Strides resolvedAs(KVLayout layout) const;
};

// Cache memory that the caller owns.
//
// Shapes, where the first axis may be left out for a single sequence:
// - head-major: `[sequences, heads, capacity, headDim]`
// - token-major: `[sequences, capacity, heads, headDim]`
//
// A linear cache keeps position p in slot p. A ring always keeps its first `pinned` positions, and the newest of the
// others: `slot(p) = p < pinned ? p : pinned + (p - pinned) mod (capacity - pinned)`.
//
// In a latent cache (multi-head latent attention) the first `latentDim` elements of a key are also its value, and are
// stored once. `values` holds them, and `keys` the rest of each key; without values, `keys` holds whole keys.
struct KVCacheView {
  // Memory of the keys.
  Tensor keys;
  // Memory of the values, which may have another head dim; none for keys only.
  std::optional<Tensor> values = {};
  // The order of axes.
  KVLayout layout = KVLayout::headMajor;
  // Where positions beyond the last slot go.
  KVWrap wrap = KVWrap::linear;
  // First positions that a ring never overwrites.
  uint32_t pinned = 0;
  // How many first elements of a key are also its value; 0 if keys and values are separate.
  uint32_t latentDim = 0;

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
