// What ops on caches share: the number of an only sequence, views of columns, and the places of rows.
#ifndef MNK_KV_CACHE_H
#define MNK_KV_CACHE_H

#include "MLXNativeKernels/Generated/mnk_cache_views.h"
#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

// Names the sequence of a cache that has one. Ops and calls on a cache with several sequences must name or list them.
#define MNK_ONLY_SEQUENCE UINT32_MAX

// Heads side by side in the columns of a [tokens, width] or [sequences, tokens, width] tensor, as a fused projection
// leaves them. Fills the view in; only the rank is checked before it is used.
bool mnk_heads_view_set_columns(mnk_heads_view* view, mnk_tensor* tensor, uint64_t first_column, uint64_t heads,
                                uint64_t head_dim, mnk_error_out error);

// One u32 per token that is stored: `list`, or a u32 tensor that the kernel reads.
typedef struct mnk_row_indices {
  const uint32_t* MNK_NULLABLE list;
  size_t list_count;
  mnk_tensor* MNK_NULLABLE tensor;
} mnk_row_indices;

MNK_HEADER_END

#endif
