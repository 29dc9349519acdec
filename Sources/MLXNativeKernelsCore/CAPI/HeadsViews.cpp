#include "CAPI/Generated/Write.hpp"
#include "Support/Errors.hpp"

using namespace mnk;

bool mnk_heads_view_set_columns(mnk_heads_view* view, mnk_tensor* tensor, uint64_t first_column, uint64_t heads,
                                uint64_t head_dim, mnk_error_out error) {
  return c::run(error, {{view, "view"}, {tensor, "tensor"}}, [&]() -> Result<void> {
    MNK_TRY(auto columns, HeadsView::columns(tensor->tensor, first_column, heads, head_dim));
    *view = c::write(columns, [&](const Tensor&) { return tensor; });
    return {};
  });
}
