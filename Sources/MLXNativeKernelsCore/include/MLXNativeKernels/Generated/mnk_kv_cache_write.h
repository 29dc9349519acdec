// Generated from Sources/API by generate.py: change the description instead.
// KVCacheWrite, which stores tokens in a cache that the caller owns.
#ifndef MNK_KV_CACHE_WRITE_H
#define MNK_KV_CACHE_WRITE_H

#include "MLXNativeKernels/Generated/mnk_cache_views.h"
#include "MLXNativeKernels/mnk_core.h"
#include "MLXNativeKernels/mnk_kv_cache.h"

MNK_HEADER_BEGIN

// A sequence and a position for each of at most 1,024 source tokens. If several name the same slot, the last one wins.
typedef struct mnk_kv_cache_write_rows {
  // The sequence of each token; a tensor is u32.
  mnk_row_indices sequences;
  // The position of each token; a tensor is u32.
  mnk_row_indices positions;
} mnk_kv_cache_write_rows;

// Stores new tokens in cache memory that the caller owns, converting to its element type.
//
// For every token t stored, head h and element e:
//
//     cache[sequence, h, slot(position + t), e] = keys[h, source_offset + t, e]
//
// and the same for values, in one dispatch. Equal element types copy bits unchanged; otherwise rounding is to nearest,
// ties to even. On a ring, a write longer than the ring keeps the newest tokens, with one writer for each slot.
//
// Source shapes are `[tokens, heads, headDim]` or `[heads, headDim]` for one token (token-major, the default), or
// `[heads, tokens, headDim]` (head-major); views can have any strides (`mnk_heads_view`). Tokens of several sequences
// count one sequence after another: those of sequence s start at `s * tokens`.
typedef struct mnk_kv_cache_write {
  // Source of the keys, of any float type.
  mnk_heads_view keys;
  // Source of the values, of the same sequences and tokens; a zeroed one stores only keys.
  mnk_heads_view values;
  // The order of axes of `keys` and `values`. `MNK_KV_LAYOUT_HEAD_MAJOR` makes both views head-major. Views with
  // strides ignore it. 0 stands for `MNK_KV_LAYOUT_TOKEN_MAJOR`.
  mnk_kv_layout source_layout;
  // First source token to store.
  uint64_t source_offset;
  // Whether `tokens` is used. Otherwise, it must be 0.
  bool has_tokens;
  // How many tokens to store; without it, all that follow the offset.
  uint64_t tokens;
  // Whether source tokens wrap around, as when a ring without pinned positions is made linear. At most all tokens of
  // the source can be stored.
  bool source_is_ring;
  // Where they go.
  mnk_kv_cache_view into;
  // The sequence that tokens go to; `MNK_ONLY_SEQUENCE` is that of a cache of one. 0 is the first sequence.
  uint64_t sequence;
  // The position of the first token stored.
  uint64_t position;
  // Whether `rows` is used. Otherwise, all of it must be 0.
  bool has_rows;
  // A place for each source token, which replaces `sequence` and `position`.
  mnk_kv_cache_write_rows rows;
} mnk_kv_cache_write;

// Checks every rule and returns what would run, without running it.
mnk_plan* MNK_NULLABLE mnk_kv_cache_write_make_plan(const mnk_kv_cache_write* op, mnk_error_out error);
bool mnk_encoder_kv_cache_write(mnk_encoder* encoder, const mnk_kv_cache_write* op, mnk_error_out error);

MNK_HEADER_END

#endif
