// Vectors of heads in a tensor's memory, as the ops read and write them. HeadsView.hpp defines it.
#ifndef MNK_HEADS_VIEW_H
#define MNK_HEADS_VIEW_H

#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

// The order of axes: [sequences, heads, tokens, headDim] or [sequences, tokens, heads, headDim]. By default, caches are
// head-major and everything else is token-major.
typedef enum MNK_CLOSED(mnk_kv_layout) {
  MNK_DEFAULT_LAYOUT = 0,
  MNK_HEAD_MAJOR = 1,
  MNK_TOKEN_MAJOR = 2
} mnk_kv_layout;

// Vectors of head_dim elements, one for every sequence, token and head, in a tensor's memory.
typedef struct mnk_heads_view {
  mnk_tensor* MNK_NULLABLE tensor;
  mnk_kv_layout layout;  // 0 is token-major
  bool has_strides;      // then what follows replaces the tensor's shape and the layout; otherwise it must be 0
  uint64_t sequences;    // counts; 0 sequences are 1
  uint64_t tokens;       // of one sequence
  uint64_t heads;
  uint64_t head_dim;
  uint64_t offset;           // of the first element in the tensor; this and the distances count elements
  uint64_t sequence_stride;  // a distance of 0 reads the same elements again
  uint64_t token_stride;
  uint64_t head_stride;
} mnk_heads_view;

// Heads side by side in the columns of a [tokens, width] or [sequences, tokens, width] tensor, as a fused projection
// leaves them. Fills the view in; only the rank is checked before it is used.
bool mnk_heads_view_set_columns(mnk_heads_view* view, mnk_tensor* tensor, uint64_t first_column, uint64_t heads,
                                uint64_t head_dim, mnk_error_out error);

MNK_HEADER_END

#endif
