// Vectors of headDim elements, one for every sequence, token and head, in a tensor's memory. By the tensor's shape:
//   tokenMajor  [sequences, tokens, heads, headDim], [tokens, heads, headDim], or [heads, headDim] for one token
//   headMajor   [sequences, heads, tokens, headDim] or [heads, tokens, headDim]
// or with any strides, such as in some columns of a fused projection. The elements of a vector are contiguous.
#pragma once
#include <cstdint>
#include <optional>

#include "MLXNativeKernels/KVCacheView.hpp"
#include "MLXNativeKernels/Result.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk {

struct HeadsView {
  // Counts of vectors, and the distances between them in elements. A stride of 0 reads the same vectors again.
  struct Strides {
    uint64_t sequences = 1;
    uint64_t tokens = 1;  // of one sequence
    uint64_t heads = 1;
    uint64_t headDim = 0;
    uint64_t offset = 0;  // of the first element in the tensor
    uint64_t sequenceStride = 0;
    uint64_t tokenStride = 0;
    uint64_t headStride = 0;

    uint64_t totalTokens() const { return sequences * tokens; }
    bool operator==(const Strides&) const = default;
  };

  Tensor tensor;
  KVLayout layout = KVLayout::tokenMajor;
  std::optional<Strides> strides = {};  // replaces the tensor's shape and the layout

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

}  // namespace mnk
