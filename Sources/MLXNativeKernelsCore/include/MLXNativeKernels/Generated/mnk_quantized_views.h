// Generated from Sources/API by generate.py: change the description instead.
// How vectors of a quantized cache are encoded, and views of such a cache.
#ifndef MNK_QUANTIZED_VIEWS_H
#define MNK_QUANTIZED_VIEWS_H

#include "MLXNativeKernels/Generated/mnk_cache_views.h"
#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

// Which codec.
typedef enum MNK_CLOSED(mnk_kv_codec_name) {
  // Head dims 32, 64, 80, 96, 112, 128, 192, 256 and 512, 2 to 8 bits, and one f16 scale for a vector.
  MNK_KV_CODEC_NAME_TURBO = 0,
  // The bytes of mlx-native 0.6.6 and later: 4 bits for powers of two from 4 to 4096; 5, 6 and 8 bits, a byte for each
  // code, for 256 and 512. Scales are f32, one for a vector, or one for each half of 512 elements.
  MNK_KV_CODEC_NAME_MLX1 = 1,
  // The bytes of mlx-native's `kv_quantize_v_no_fwht`, which writes values beside f16 keys: as `MNK_KV_CODEC_NAME_MLX1`
  // with 5, 6 or 8 bits, but vectors are not rotated. An outlier therefore coarsens the rest of its vector.
  MNK_KV_CODEC_NAME_MLX1_UNROTATED = 2,
  // The bytes of mlx-native's `hadamard_quantize_kv_affine4`: 4 bits for 256 and 512, evenly spaced values instead of a
  // codebook, no signs, and one f32 scale for a vector.
  MNK_KV_CODEC_NAME_MLX1_AFFINE4 = 3,
} mnk_kv_codec_name;

// How the vectors of a quantized cache are encoded. The meaning of a codec's bytes never changes.
//
// `MNK_KV_CODEC_NAME_TURBO` and `MNK_KV_CODEC_NAME_MLX1` rotate a vector x of headDim elements,
//
//     r = H(s .* x) / sqrt(headDim)
//
// where H is the Walsh-Hadamard transform in natural order and s a fixed table of signs, and quantize each element of r
// to the index of a codebook value for numbers of variance 1. `mnk_hadamard` is this rotation as an op.
typedef struct mnk_kv_codec {
  // Which codec.
  mnk_kv_codec_name name;
  // Bits of one code: 2 to 8 for `MNK_KV_CODEC_NAME_TURBO`; 4, 5, 6 or 8 for `MNK_KV_CODEC_NAME_MLX1`; 5, 6 or 8 for
  // `MNK_KV_CODEC_NAME_MLX1_UNROTATED`; 4 for `MNK_KV_CODEC_NAME_MLX1_AFFINE4`.
  uint32_t bits;
  // What `MNK_KV_CODEC_NAME_MLX1` and `MNK_KV_CODEC_NAME_MLX1_UNROTATED` multiply elements by before they are
  // quantized, at a head dim of 512. 0 stands for 1.
  float scale_factor;
} mnk_kv_codec;

// The scale that turbo stores for a vector r whose codes represent the codebook values c.
typedef enum MNK_CLOSED(mnk_kv_scale_rule) {
  // The default of the field.
  MNK_KV_SCALE_RULE_DEFAULT = 0,
  // `<r, r> / <r, c>`: keeps the vector's component along itself, so that scores do not shrink.
  MNK_KV_SCALE_RULE_UNBIASED = 1,
  // `<r, c> / <c, c>`: minimizes the error of the vector.
  MNK_KV_SCALE_RULE_LEAST_SQUARES = 2,
} mnk_kv_scale_rule;

// What is stored for a vector that holds a NaN or an infinity.
typedef enum MNK_CLOSED(mnk_kv_non_finite) {
  // A scale that is NaN, so that what is computed with the vector is NaN.
  MNK_KV_NON_FINITE_PROPAGATE = 0,
  // Zero.
  MNK_KV_NON_FINITE_ZERO = 1,
} mnk_kv_non_finite;

// In which domain vectors are read back.
typedef enum MNK_CLOSED(mnk_kv_domain) {
  // That of the vectors which were stored: rotated back, channel scales and means undone.
  MNK_KV_DOMAIN_ORIGINAL = 0,
  // That of the codes: scale times codebook value, as attention reads it. `mnk_hadamard` takes a query there. A plane
  // that holds elements has one domain, the original.
  MNK_KV_DOMAIN_ROTATED = 1,
} mnk_kv_domain;

// How vectors are quantized where the format allows a choice. Readers do not need it.
typedef struct mnk_kv_quantize_options {
  // How many sizes of a vector turbo tries, 1, 5 or 17, to keep the codes whose direction is nearest to the vector's. 0
  // stands for 5.
  uint32_t candidates;
  // The scale of a key. 0 stands for `MNK_KV_SCALE_RULE_UNBIASED`.
  mnk_kv_scale_rule key_scale;
  // The scale of a value. 0 stands for `MNK_KV_SCALE_RULE_LEAST_SQUARES`.
  mnk_kv_scale_rule value_scale;
  // What is stored for a vector that holds a NaN or an infinity.
  mnk_kv_non_finite non_finite;
} mnk_kv_quantize_options;

// Codes and scales of keys, or of values, in memory that the caller owns.
//
// Shapes, where the first axis may be left out for a single sequence, and where scales have a last axis of 2 if a
// vector has two of them:
// - head-major: codes `[sequences, heads, capacity, codeBytes]`, scales `[sequences, heads, capacity]`
// - token-major: codes `[sequences, capacity, heads, codeBytes]`, scales `[sequences, capacity, heads]`
//
// What is quantized is `(x - means) .* channelScales`. For keys this is free: a mean that all keys of a head share adds
// the same number to all scores of a query, and dividing queries by the channel scales leaves scores unchanged. A mean
// of values is added to the result of attention.
//
// One of keys and values may be dense: elements of f32, f16 or bf16, with `headDim` instead of `codeBytes`, and without
// scales.
//
// Without `codes` it is left out, and all of it must be 0.
typedef struct mnk_quantized_kv_plane {
  // The codec; ignored for dense vectors.
  mnk_kv_codec codec;
  // Codes, u8, or the elements of dense vectors.
  mnk_tensor* MNK_NULLABLE codes;
  // Scales, f16 for turbo, otherwise f32; `NULL` for dense vectors.
  mnk_tensor* MNK_NULLABLE scales;
  // Subtracted from vectors before they are quantized: f32, `[heads, headDim]`. Turbo only.
  mnk_tensor* MNK_NULLABLE means;
  // Multiplies the difference: f32, `[heads, headDim]`, none of them 0. Keys of turbo only.
  mnk_tensor* MNK_NULLABLE channel_scales;
} mnk_quantized_kv_plane;

// Memory of a quantized cache that the caller owns. Slots are those of a `mnk_kv_cache_view`.
typedef struct mnk_quantized_kv_cache_view {
  // Memory of the keys.
  mnk_quantized_kv_plane keys;
  // Memory of the values, which may have other bits and another head dim; a zeroed one for keys only.
  mnk_quantized_kv_plane values;
  // The order of axes. 0 stands for `MNK_KV_LAYOUT_HEAD_MAJOR`.
  mnk_kv_layout layout;
  // Where positions beyond the last slot go.
  mnk_kv_wrap wrap;
  // First positions that a ring never overwrites.
  uint32_t pinned;
  // The length of values that are the first part of keys, in a latent cache; 0 if keys and values are separate.
  uint32_t latent_dim;
} mnk_quantized_kv_cache_view;

MNK_HEADER_END

#endif
