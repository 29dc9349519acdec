// Generated from Sources/API by generate.py: change the description instead.
// Views of vectors of heads and of caches, in memory that the caller owns.
#ifndef MNK_CACHE_VIEWS_H
#define MNK_CACHE_VIEWS_H

#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

// The order of axes in memory that holds keys or values.
typedef enum MNK_CLOSED(mnk_kv_layout) {
  // The default of the field.
  MNK_KV_LAYOUT_DEFAULT = 0,
  // Heads outside, tokens inside: `[heads, tokens, headDim]`.
  MNK_KV_LAYOUT_HEAD_MAJOR = 1,
  // Tokens outside, heads inside: `[tokens, heads, headDim]`.
  MNK_KV_LAYOUT_TOKEN_MAJOR = 2,
} mnk_kv_layout;

// Where positions beyond the last slot go.
typedef enum MNK_CLOSED(mnk_kv_wrap) {
  // An error: position p is in slot p, and there is no slot beyond the capacity.
  MNK_KV_WRAP_LINEAR = 0,
  // Around: the newest positions take the slots of the oldest.
  MNK_KV_WRAP_RING = 1,
} mnk_kv_wrap;

// Counts of vectors, and the distances between them in elements. A stride of 0 reads the same vectors again.
typedef struct mnk_heads_view_strides {
  // How many sequences there are. 0 stands for 1.
  uint64_t sequences;
  // Tokens of one sequence.
  uint64_t tokens;
  // Heads of one token.
  uint64_t heads;
  // Elements of one head.
  uint64_t head_dim;
  // The offset of the first element in the tensor.
  uint64_t offset;
  // From one sequence to the next.
  uint64_t sequence_stride;
  // From one token to the next.
  uint64_t token_stride;
  // From one head to the next.
  uint64_t head_stride;
} mnk_heads_view_strides;

// Vectors of `headDim` elements, one for every sequence, token and head, in a tensor's memory.
//
// By the tensor's shape, where the sequences may be left out:
// - token-major: `[sequences, tokens, heads, headDim]`, or `[heads, headDim]` for one token
// - head-major: `[sequences, heads, tokens, headDim]`
//
// or with any strides, such as in some columns of a fused projection. The elements of a vector are contiguous.
//
// Without `tensor` it is left out, and all of it must be 0.
typedef struct mnk_heads_view {
  // The memory.
  mnk_tensor* MNK_NULLABLE tensor;
  // The order of its axes. 0 stands for `MNK_KV_LAYOUT_TOKEN_MAJOR`.
  mnk_kv_layout layout;
  // Whether `strides` is used. Otherwise, all of it must be 0.
  bool has_strides;
  // If there are any, they replace the tensor's shape and the layout.
  mnk_heads_view_strides strides;
} mnk_heads_view;

// Cache memory that the caller owns.
//
// Shapes, where the first axis may be left out for a single sequence:
// - head-major: `[sequences, heads, capacity, headDim]`
// - token-major: `[sequences, capacity, heads, headDim]`
//
// A linear cache keeps position p in slot p. A ring always keeps its first `pinned` positions, and the newest of the
// others: `slot(p) = p < pinned ? p : pinned + (p - pinned) mod (capacity - pinned)`.
//
// In a latent cache (multi-head latent attention) the first `latent_dim` elements of a key are also its value, and are
// stored once. `values` holds them, and `keys` the rest of each key; without values, `keys` holds whole keys.
typedef struct mnk_kv_cache_view {
  // Memory of the keys.
  mnk_tensor* MNK_NULLABLE keys;
  // Memory of the values, which may have another head dim; `NULL` for keys only.
  mnk_tensor* MNK_NULLABLE values;
  // The order of axes. 0 stands for `MNK_KV_LAYOUT_HEAD_MAJOR`.
  mnk_kv_layout layout;
  // Where positions beyond the last slot go.
  mnk_kv_wrap wrap;
  // First positions that a ring never overwrites.
  uint32_t pinned;
  // How many first elements of a key are also its value; 0 if keys and values are separate.
  uint32_t latent_dim;
} mnk_kv_cache_view;

MNK_HEADER_END

#endif
