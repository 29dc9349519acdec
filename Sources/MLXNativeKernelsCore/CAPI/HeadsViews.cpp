#include "CAPI/HeadsViews.hpp"

#include "Support/Try.hpp"

using namespace mnk;

namespace mnk::c {

Result<std::optional<HeadsView>> viewFrom(const mnk_heads_view& given) {
  if (!given.tensor) return std::optional<HeadsView>();
  if (given.size != sizeof given) return wrongSize("mnk_heads_view", given.size, sizeof given);
  if (given.has_strides) {
    return std::optional(HeadsView(given.tensor->tensor, HeadsView::Strides{.sequences = given.sequences,
                                                                            .tokens = given.tokens,
                                                                            .heads = given.heads,
                                                                            .headDim = given.head_dim,
                                                                            .offset = given.offset,
                                                                            .sequenceStride = given.sequence_stride,
                                                                            .tokenStride = given.token_stride,
                                                                            .headStride = given.head_stride}));
  }
  MNK_TRY(auto layout, c::layout(given.layout));
  return std::optional(HeadsView(given.tensor->tensor, layout));
}

}  // namespace mnk::c

bool mnk_heads_view_set_columns(mnk_heads_view* view, mnk_tensor* tensor, uint64_t first_column, uint64_t heads,
                                uint64_t head_dim, mnk_error_out error) {
  return c::run(error, {{view, "view"}, {tensor, "tensor"}}, [&]() -> Result<void> {
    MNK_TRY(auto columns, HeadsView::columns(tensor->tensor, first_column, heads, head_dim));
    const HeadsView::Strides strides = columns.resolved();
    *view = {.size = sizeof *view,
             .tensor = tensor,
             .layout = MNK_TOKEN_MAJOR,
             .has_strides = true,
             .sequences = strides.sequences,
             .tokens = strides.tokens,
             .heads = strides.heads,
             .head_dim = strides.headDim,
             .offset = strides.offset,
             .sequence_stride = strides.sequenceStride,
             .token_stride = strides.tokenStride,
             .head_stride = strides.headStride};
    return {};
  });
}
