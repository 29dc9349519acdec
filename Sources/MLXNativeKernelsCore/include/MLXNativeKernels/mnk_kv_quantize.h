// The C API to quantized caches over caller-owned memory: KVCacheQuantize stores, KVCacheDequantize reads back, and
// Hadamard rotates queries and results. The headers of these names define them.
#ifndef MNK_KV_QUANTIZE_H
#define MNK_KV_QUANTIZE_H

#include "MLXNativeKernels/mnk_core.h"
#include "MLXNativeKernels/mnk_kv_cache.h"
#include "MLXNativeKernels/mnk_kv_codec.h"

MNK_HEADER_BEGIN

// Keys or values of a cache. Without codes they are left out. One of the two may be dense: elements of f32, f16 or
// bf16, [sequences,] heads, capacity, headDim, instead of codes, and nothing else.
typedef struct mnk_quantized_kv_plane {
  mnk_kv_codec codec;
  mnk_tensor* MNK_NULLABLE codes;   // u8 [sequences,] heads, capacity, code bytes (head-major; or capacity, heads, …)
  mnk_tensor* MNK_NULLABLE scales;  // f16 for turbo, otherwise f32: the same axes; the last one only if there are two
  mnk_tensor* MNK_NULLABLE means;   // turbo: f32 [heads, headDim]; NULL: none
  mnk_tensor* MNK_NULLABLE channel_scales;  // turbo, keys only: f32 [heads, headDim]; NULL: none
} mnk_quantized_kv_plane;

typedef struct mnk_quantized_kv_view {
  mnk_quantized_kv_plane keys;
  mnk_quantized_kv_plane values;
  mnk_kv_layout layout;  // 0 is head-major
  mnk_kv_wrap wrap;
  uint32_t pinned;      // first positions that a ring never overwrites
  uint32_t latent_dim;  // of a latent cache, whose values are the first elements of keys; 0: they are separate
} mnk_quantized_kv_view;

typedef struct mnk_kv_cache_quantize {
  mnk_tensor* MNK_NULLABLE keys;    // f32, f16 or bf16; the fields of a source and of places are those of
  mnk_tensor* MNK_NULLABLE values;  // mnk_kv_cache_write
  mnk_kv_layout source_layout;
  uint64_t source_offset;
  bool has_tokens;
  uint64_t tokens;
  bool source_is_ring;
  mnk_quantized_kv_view into;
  uint64_t sequence;  // 0 is the first; or MNK_ONLY_SEQUENCE, which a cache of several refuses
  uint64_t position;
  bool has_rows;
  mnk_row_indices sequences;
  mnk_row_indices positions;
  mnk_kv_quantize_options options;
  mnk_tensor* MNK_NULLABLE counts;  // u32 [2]: vectors that are not finite, and scales too large, are added
  mnk_tensor* MNK_NULLABLE probe;   // mlx1, one token: f32 [heads, headDim], as compared with boundaries
  const mnk_heads_view* MNK_NULLABLE keys_view;    // replaces keys and their layout
  const mnk_heads_view* MNK_NULLABLE values_view;  // replaces values and their layout
} mnk_kv_cache_quantize;

// Checks every rule and returns what would run, without running it.
mnk_plan* MNK_NULLABLE mnk_kv_cache_quantize_make_plan(const mnk_kv_cache_quantize* op, mnk_error_out error);
bool mnk_encoder_kv_cache_quantize(mnk_encoder* encoder, const mnk_kv_cache_quantize* op, mnk_error_out error);

typedef enum MNK_CLOSED(mnk_kv_domain) { MNK_ORIGINAL_DOMAIN = 0, MNK_ROTATED_DOMAIN = 1 } mnk_kv_domain;

typedef struct mnk_kv_cache_dequantize {
  mnk_quantized_kv_view from;
  uint64_t sequence;              // 0 is the first; or MNK_ONLY_SEQUENCE, which a cache of several refuses
  uint64_t position;              // of the first token read
  mnk_tensor* MNK_NULLABLE keys;  // f32, f16 or bf16, both alike, for the same tokens; at least one of them
  mnk_tensor* MNK_NULLABLE values;
  mnk_kv_layout layout;  // of keys and values; 0 is token-major. Sequences of a first axis follow each other
  mnk_kv_domain domain;
} mnk_kv_cache_dequantize;

mnk_plan* MNK_NULLABLE mnk_kv_cache_dequantize_make_plan(const mnk_kv_cache_dequantize* op, mnk_error_out error);
bool mnk_encoder_kv_cache_dequantize(mnk_encoder* encoder, const mnk_kv_cache_dequantize* op, mnk_error_out error);

typedef struct mnk_hadamard {
  mnk_tensor* from;               // f32, f16 or bf16; its last axis is a power of two from 4 to 4096; or 80, 96, 112 or
                                  // 192, where the transform is turbo's rotation by blocks
  mnk_tensor* MNK_NULLABLE into;  // of the same shape; NULL: in place
  bool has_signs;                 // then those of the codec `signs`; else none
  mnk_kv_codec_name signs;
  bool is_inverse;
} mnk_hadamard;

mnk_plan* MNK_NULLABLE mnk_hadamard_make_plan(const mnk_hadamard* op, mnk_error_out error);
bool mnk_encoder_hadamard(mnk_encoder* encoder, const mnk_hadamard* op, mnk_error_out error);

MNK_HEADER_END

#endif
