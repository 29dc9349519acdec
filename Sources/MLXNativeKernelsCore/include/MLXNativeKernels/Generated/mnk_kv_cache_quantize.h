// Generated from Sources/API by generate.py: change the description instead.
// Ops on quantized caches that the caller owns: KVCacheQuantize, KVCacheDequantize and Hadamard.
#ifndef MNK_KV_CACHE_QUANTIZE_H
#define MNK_KV_CACHE_QUANTIZE_H

#include "MLXNativeKernels/Generated/mnk_cache_views.h"
#include "MLXNativeKernels/Generated/mnk_kv_cache_write.h"
#include "MLXNativeKernels/Generated/mnk_quantized_views.h"
#include "MLXNativeKernels/mnk_core.h"
#include "MLXNativeKernels/mnk_kv_codec.h"

MNK_HEADER_BEGIN

// Stores new tokens in a quantized cache that the caller owns.
//
// For every token t stored and head h:
//
//     cache[sequence, h, slot(position + t)] = quantized(keys[h, source_offset + t])
//
// as `mnk_kv_codec` says, and the same for values, in one dispatch. Sources, slots, rings and rows are those of
// `mnk_kv_cache_write`. No vector affects what is stored for another.
//
// A scale beyond the largest f16 becomes the largest. Elements below 2^-125, or below 2^-100 of the vector's largest,
// count as zero.
typedef struct mnk_kv_cache_quantize {
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
  mnk_quantized_kv_cache_view into;
  // The sequence that tokens go to; `MNK_ONLY_SEQUENCE` is that of a cache of one. 0 is the first sequence.
  uint64_t sequence;
  // The position of the first token stored.
  uint64_t position;
  // Whether `rows` is used. Otherwise, all of it must be 0.
  bool has_rows;
  // A place for each source token, which replaces `sequence` and `position`.
  mnk_kv_cache_write_rows rows;
  // How vectors are quantized where the format allows a choice.
  mnk_kv_quantize_options options;
  // Of u32, `[2]`: the number of vectors with a NaN or an infinity, and of those whose scale exceeds the largest f16,
  // are added.
  mnk_tensor* MNK_NULLABLE counts;
  // For one token of `MNK_KV_CODEC_NAME_MLX1`: of f32, `[heads, headDim]`, receives the keys' elements as they are
  // compared with boundaries.
  mnk_tensor* MNK_NULLABLE probe;
} mnk_kv_cache_quantize;

// Checks every rule and returns what would run, without running it.
mnk_plan* MNK_NULLABLE mnk_kv_cache_quantize_make_plan(const mnk_kv_cache_quantize* op, mnk_error_out error);
bool mnk_encoder_kv_cache_quantize(mnk_encoder* encoder, const mnk_kv_cache_quantize* op, mnk_error_out error);

// Dequantizes positions of a quantized cache, keys and values in one dispatch.
//
//     keys[t, h] = the key of head h at position + t      for each token of the tensor
//
// Shapes are `[tokens, heads, headDim]` or `[heads, headDim]` for one token (token-major, the default), or
// `[heads, tokens, headDim]` (head-major). With a first axis of sequences, their tokens follow each other: all are of
// the one sequence that is read. The op cannot detect what a ring has overwritten.
typedef struct mnk_kv_cache_dequantize {
  // The cache that is read.
  mnk_quantized_kv_cache_view from;
  // The sequence that is read; `MNK_ONLY_SEQUENCE` is that of a cache of one. 0 is the first sequence.
  uint64_t sequence;
  // The position of the first token read.
  uint64_t position;
  // Receives the keys, in any float type; `NULL` reads only values.
  mnk_tensor* MNK_NULLABLE keys;
  // Receives the values, in the same type; `NULL` reads only keys.
  mnk_tensor* MNK_NULLABLE values;
  // The order of axes of keys and values. 0 stands for `MNK_KV_LAYOUT_TOKEN_MAJOR`.
  mnk_kv_layout layout;
  // The domain of what is read.
  mnk_kv_domain domain;
} mnk_kv_cache_dequantize;

// Checks every rule and returns what would run, without running it.
mnk_plan* MNK_NULLABLE mnk_kv_cache_dequantize_make_plan(const mnk_kv_cache_dequantize* op, mnk_error_out error);
bool mnk_encoder_kv_cache_dequantize(mnk_encoder* encoder, const mnk_kv_cache_dequantize* op, mnk_error_out error);

// Applies the Walsh-Hadamard transform in natural order to every vector along a tensor's last axis, scaled so that
// lengths do not change.
//
//     forward   y = H(s .* x) / sqrt(n)        inverse   y = s .* H(x) / sqrt(n)
//
// where n is a power of two from 4 to 4096 and s are the signs of a codec at this length, or ones. With a codec's
// signs, forward takes a query to the domain of its codes, and inverse takes the result of attention over them back. At
// 80, 96, 112 and 192 elements H / sqrt(n) is the rotation by blocks of `MNK_KV_CODEC_NAME_TURBO`.
//
// Attention does both inside: only a kernel of your own that attends over codes needs them.
typedef struct mnk_hadamard {
  // The vectors, of any float type.
  mnk_tensor* from;
  // Where results go, of the same shape and any float type; `NULL` means in place.
  mnk_tensor* MNK_NULLABLE into;
  // Whether `signs` is used. Otherwise, it must be 0.
  bool has_signs;
  // The codec whose signs are used; no `has_signs` means none. `MNK_KV_CODEC_NAME_TURBO` has signs at 32, 64, 80, 96,
  // 112, 128, 192, 256 and 512, `MNK_KV_CODEC_NAME_MLX1` at 256 and 512, with ones at other powers of two. Other codecs
  // have none.
  mnk_kv_codec_name signs;
  // Whether to undo the transform.
  bool is_inverse;
} mnk_hadamard;

// Checks every rule and returns what would run, without running it.
mnk_plan* MNK_NULLABLE mnk_hadamard_make_plan(const mnk_hadamard* op, mnk_error_out error);
bool mnk_encoder_hadamard(mnk_encoder* encoder, const mnk_hadamard* op, mnk_error_out error);

MNK_HEADER_END

#endif
