// The C API to caches over caller-owned memory: KVCacheWrite. mnk_attention_cache.h has those that keep their own.
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

// See KVCacheWrite.hpp for the definition.
typedef struct mnk_kv_cache_write {
  mnk_tensor* MNK_NULLABLE keys;  // these, or the views below
  mnk_tensor* MNK_NULLABLE values;
  mnk_kv_layout source_layout;  // of these; 0 is token-major
  uint64_t source_offset;
  bool has_tokens;  // then `tokens` says how many to store; else all that follow the offset
  uint64_t tokens;
  bool source_is_ring;
  mnk_kv_cache_view into;
  uint64_t sequence;  // 0 is the first; or MNK_ONLY_SEQUENCE, which a cache of several refuses
  uint64_t position;
  bool has_rows;  // then sequences and positions replace sequence and position
  mnk_row_indices sequences;
  mnk_row_indices positions;
  const mnk_heads_view* MNK_NULLABLE keys_view;    // replaces keys and their layout
  const mnk_heads_view* MNK_NULLABLE values_view;  // replaces values and their layout
} mnk_kv_cache_write;

// Checks every rule and returns what would run, without running it.
mnk_plan* MNK_NULLABLE mnk_kv_cache_write_make_plan(const mnk_kv_cache_write* op, mnk_error_out error);
bool mnk_encoder_kv_cache_write(mnk_encoder* encoder, const mnk_kv_cache_write* op, mnk_error_out error);

MNK_HEADER_END

#endif
