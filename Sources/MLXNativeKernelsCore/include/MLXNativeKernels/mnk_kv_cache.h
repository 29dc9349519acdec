// The C door to caches: KVCacheWrite over memory of the caller's, and AttentionCache, which keeps its own.
#ifndef MNK_KV_CACHE_H
#define MNK_KV_CACHE_H

#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

typedef struct mnk_cache mnk_cache;

// KVCacheWrite

typedef enum MNK_CLOSED(mnk_kv_layout) { MNK_HEAD_MAJOR = 0, MNK_TOKEN_MAJOR = 1 } mnk_kv_layout;
typedef enum MNK_CLOSED(mnk_kv_wrap) { MNK_LINEAR = 0, MNK_RING = 1 } mnk_kv_wrap;

typedef struct mnk_kv_cache_view {
  size_t size;                      // sizeof(mnk_kv_cache_view), exactly
  mnk_tensor* keys;                 // [sequences,] heads, capacity, headDim (head-major), or
  mnk_tensor* MNK_NULLABLE values;  // [sequences,] capacity, heads, headDim (token-major)
  mnk_kv_layout layout;
  mnk_kv_wrap wrap;
  uint32_t pinned;  // first positions that a ring never overwrites
} mnk_kv_cache_view;

// One u32 per source token: `list`, or a u32 tensor that the kernel reads.
typedef struct mnk_row_indices {
  const uint32_t* MNK_NULLABLE list;
  size_t list_count;
  mnk_tensor* MNK_NULLABLE tensor;
} mnk_row_indices;

// See KVCacheWrite.hpp for the definition.
typedef struct mnk_kv_cache_write {
  size_t size;  // sizeof(mnk_kv_cache_write)
  mnk_tensor* keys;
  mnk_tensor* MNK_NULLABLE values;
  mnk_kv_layout source_layout;
  uint64_t source_offset;
  bool has_tokens;  // then `tokens` says how many to store; else all that follow the offset
  uint64_t tokens;
  bool source_is_ring;
  mnk_kv_cache_view into;
  uint64_t sequence;
  uint64_t position;
  bool has_rows;  // then sequences and positions take the place of sequence and position
  mnk_row_indices sequences;
  mnk_row_indices positions;
} mnk_kv_cache_write;

// Checks every rule and says what would run, without running it.
mnk_plan* MNK_NULLABLE mnk_kv_cache_write_make_plan(const mnk_kv_cache_write* op, mnk_error_out error);
bool mnk_encoder_kv_cache_write(mnk_encoder* encoder, const mnk_kv_cache_write* op, mnk_error_out error);

// AttentionCache

typedef struct mnk_cache_descriptor {
  size_t size;  // sizeof(mnk_cache_descriptor)
  uint32_t kv_heads;
  uint32_t head_dim;
  uint32_t value_head_dim;  // 0: as head_dim
  uint32_t capacity;        // slots of one sequence
  uint32_t sequences;
  mnk_dtype dtype;        // f32, f16 or bf16
  mnk_kv_wrap when_full;  // MNK_RING overwrites the oldest, MNK_LINEAR fails
  uint32_t pinned;        // first positions that a ring never overwrites
} mnk_cache_descriptor;

mnk_cache* MNK_NULLABLE mnk_cache_make(mnk_device* device, const mnk_cache_descriptor* descriptor, mnk_error_out error);
void mnk_cache_release(mnk_cache* MNK_NULLABLE cache);

uint64_t mnk_cache_bytes(const mnk_cache* cache);
// Tensors over the cache's memory, head-major: [sequences, kvHeads, capacity, headDim].
mnk_tensor* MNK_NULLABLE mnk_cache_make_keys(const mnk_cache* cache, mnk_error_out error);
mnk_tensor* MNK_NULLABLE mnk_cache_make_values(const mnk_cache* cache, mnk_error_out error);

// State of committed work; an unknown sequence reads as empty.
uint64_t mnk_cache_next_position(const mnk_cache* cache, uint32_t sequence);
uint64_t mnk_cache_count(const mnk_cache* cache, uint32_t sequence);
bool mnk_cache_is_suspect(const mnk_cache* cache, uint32_t sequence);
uint64_t mnk_cache_slot(const mnk_cache* cache, uint64_t position);

// Records a write at the next position, which advances when the encoder is committed.
bool mnk_encoder_append(mnk_encoder* encoder, mnk_cache* cache, const mnk_tensor* keys, const mnk_tensor* values,
                        uint32_t sequence, mnk_error_out error);
// One token for each listed sequence.
bool mnk_encoder_append_rows(mnk_encoder* encoder, mnk_cache* cache, const mnk_tensor* keys, const mnk_tensor* values,
                             const uint32_t* sequences, size_t count, mnk_error_out error);
bool mnk_cache_truncate(mnk_cache* cache, uint64_t position, uint32_t sequence, mnk_error_out error);
bool mnk_cache_reset_sequence(mnk_cache* cache, uint32_t sequence, mnk_error_out error);
void mnk_cache_reset(mnk_cache* cache);

MNK_HEADER_END

#endif
