#include "MLXNativeKernels/Generated/CacheViews.hpp"

#include "Support/Errors.hpp"

namespace mnk {

Result<HeadsView> HeadsView::columns(const Tensor& tensor, uint64_t firstColumn, uint64_t heads, uint64_t headDim) {
  return guarded("HeadsView", [&]() -> Result<HeadsView> {
    const Shape& shape = tensor.shape();
    const uint32_t rank = shape.rank();
    if (rank != 2 && rank != 3) {
      return Error{.op = "HeadsView",
                   .what = "the tensor has no columns",
                   .got = shape.text(),
                   .expected = "[tokens, width] or [sequences, tokens, width]",
                   .fix = "Reshape the tensor, or give strides."};
    }
    const uint64_t tokens = shape[rank - 2], width = shape[rank - 1];
    return HeadsView(tensor, Strides{.sequences = rank == 3 ? shape[0] : 1,
                                     .tokens = tokens,
                                     .heads = heads,
                                     .headDim = headDim,
                                     .offset = firstColumn,
                                     .sequenceStride = tokens * width,
                                     .tokenStride = width,
                                     .headStride = headDim});
  });
}

namespace {

bool isReadableRank(uint32_t rank, KVLayout layout) {
  return rank == 3 || rank == 4 || (rank == 2 && layout == KVLayout::tokenMajor);
}

}  // namespace

bool HeadsView::isReadable() const {
  return strides || isReadableRank(tensor.shape().rank(), layout);
}

HeadsView::Strides HeadsView::resolvedAs(KVLayout layout) const {
  if (strides) return *strides;
  const Shape& shape = tensor.shape();
  const uint32_t rank = shape.rank();
  if (!isReadableRank(rank, layout)) return {.sequences = 0, .tokens = 0, .heads = 0};
  const uint64_t inner = shape[rank - 2];
  const uint64_t outer = rank == 2 ? 1 : shape[rank - 3];
  Strides result{.sequences = rank == 4 ? shape[0] : 1, .headDim = shape[rank - 1]};
  result.sequenceStride = outer * inner * result.headDim;
  const bool isHeadMajor = layout == KVLayout::headMajor;
  result.tokens = isHeadMajor ? inner : outer;
  result.heads = isHeadMajor ? outer : inner;
  (isHeadMajor ? result.tokenStride : result.headStride) = result.headDim;
  (isHeadMajor ? result.headStride : result.tokenStride) = inner * result.headDim;
  return result;
}

}  // namespace mnk
