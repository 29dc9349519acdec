#include "CAPI/HeadsViews.hpp"

#include <algorithm>

#include "Support/Format.hpp"
#include "Support/Try.hpp"

using namespace mnk;

namespace mnk::c {

namespace {

bool hasNumbers(const mnk_heads_view& view) {
  return view.sequences != 0 || view.tokens != 0 || view.heads != 0 || view.head_dim != 0 || view.offset != 0 ||
         view.sequence_stride != 0 || view.token_stride != 0 || view.head_stride != 0;
}

}  // namespace

Result<bool> readView(HeadsView& into, const mnk_heads_view& input, std::string_view name) {
  if (!input.tensor && (input.has_strides || hasNumbers(input))) return nullArgument(fmt::format("{}.tensor", name));
  if (!input.tensor) return false;
  into.tensor = input.tensor->tensor;
  if (input.has_strides) {
    into.strides = {.sequences = std::max<uint64_t>(input.sequences, 1),
                    .tokens = input.tokens,
                    .heads = input.heads,
                    .headDim = input.head_dim,
                    .offset = input.offset,
                    .sequenceStride = input.sequence_stride,
                    .tokenStride = input.token_stride,
                    .headStride = input.head_stride};
    return true;
  }
  if (hasNumbers(input)) return ignored("mnk_heads_view", fmt::format("the strides of {}", name), "has_strides");
  MNK_TRY(into.layout, layout(input.layout, KVLayout::tokenMajor));
  return true;
}

Result<void> readView(std::optional<HeadsView>& into, const mnk_heads_view& input, std::string_view name) {
  MNK_TRY(const bool isGiven, readView(into.emplace(), input, name));
  if (!isGiven) into.reset();
  return {};
}

}  // namespace mnk::c

bool mnk_heads_view_set_columns(mnk_heads_view* view, mnk_tensor* tensor, uint64_t first_column, uint64_t heads,
                                uint64_t head_dim, mnk_error_out error) {
  return c::run(error, {{view, "view"}, {tensor, "tensor"}}, [&]() -> Result<void> {
    MNK_TRY(auto columns, HeadsView::columns(tensor->tensor, first_column, heads, head_dim));
    const HeadsView::Strides strides = columns.resolved();
    *view = {.tensor = tensor,
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
