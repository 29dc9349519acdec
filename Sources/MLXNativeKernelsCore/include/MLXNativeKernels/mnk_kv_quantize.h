// The C API to quantized caches over caller-owned memory: KVCacheQuantize stores, KVCacheDequantize reads back, and
// Hadamard rotates queries and results. The headers of these names define them.
#ifndef MNK_KV_QUANTIZE_H
#define MNK_KV_QUANTIZE_H

#include "MLXNativeKernels/mnk_core.h"
#include "MLXNativeKernels/mnk_kv_cache.h"
#include "MLXNativeKernels/mnk_kv_codec.h"

MNK_HEADER_BEGIN

typedef struct mnk_kv_cache_quantize {
  mnk_tensor* MNK_NULLABLE keys;    // f32, f16 or bf16; the fields of a source and of places are those of
  mnk_tensor* MNK_NULLABLE values;  // mnk_kv_cache_write
  mnk_kv_layout source_layout;
  uint64_t source_offset;
  bool has_tokens;
  uint64_t tokens;
  bool source_is_ring;
  mnk_quantized_kv_cache_view into;
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

typedef struct mnk_kv_cache_dequantize {
  mnk_quantized_kv_cache_view from;
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
