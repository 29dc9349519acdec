// The C API to caches over caller-owned memory: KVCacheWrite. mnk_attention_cache.h has those that keep their own.
#ifndef MNK_KV_CACHE_H
#define MNK_KV_CACHE_H

#include "MLXNativeKernels/mnk_core.h"
#include "MLXNativeKernels/mnk_heads_view.h"

MNK_HEADER_BEGIN

// Names the sequence of a cache that has one. Ops and calls on a cache with several sequences must name or list them.
#define MNK_ONLY_SEQUENCE UINT32_MAX

typedef enum MNK_CLOSED(mnk_kv_wrap) { MNK_LINEAR = 0, MNK_RING = 1 } mnk_kv_wrap;

typedef struct mnk_kv_cache_view {
  mnk_tensor* keys;                 // [sequences,] heads, capacity, headDim (head-major), or
  mnk_tensor* MNK_NULLABLE values;  // [sequences,] capacity, heads, headDim (token-major)
  mnk_kv_layout layout;
  mnk_kv_wrap wrap;
  uint32_t pinned;  // first positions that a ring never overwrites
  // For a latent cache: how many first elements of keys are also their values. `values` holds them, and `keys` the
  // rest; without values, `keys` holds both. 0: keys and values are separate.
  uint32_t latent_dim;
} mnk_kv_cache_view;

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
