// The C API to codecs: how vectors of a quantized cache are encoded, and their sizes. KVCodec.hpp defines them. A codec
// that is zero but for its bits is turbo.
#ifndef MNK_KV_CODEC_H
#define MNK_KV_CODEC_H

#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

typedef enum MNK_CLOSED(mnk_kv_codec_name) {
  MNK_TURBO = 0,
  MNK_MLX1 = 1,
  MNK_MLX1_UNROTATED = 2,
  MNK_MLX1_AFFINE4 = 3,
} mnk_kv_codec_name;

typedef struct mnk_kv_codec {
  mnk_kv_codec_name name;
  uint32_t bits;       // turbo: 2 to 8; mlx1: 4, 5, 6 or 8; mlx1Unrotated: 5, 6 or 8; mlx1Affine4: 4
  float scale_factor;  // mlx1 and mlx1Unrotated at head dim 512; 0 is 1
} mnk_kv_codec;

// The sizes of one vector.
typedef struct mnk_kv_codec_sizes {
  uint64_t code_bytes;
  uint64_t scales;       // how many
  uint64_t scale_bytes;  // of all of them together
} mnk_kv_codec_sizes;

bool mnk_kv_codec_get_sizes(const mnk_kv_codec* codec, uint64_t head_dim, mnk_kv_codec_sizes* sizes,
                            mnk_error_out error);

// The extents of a quantized cache.
typedef struct mnk_quantized_cache_extents {
  mnk_kv_codec keys;
  uint64_t head_dim;
  bool has_values;          // otherwise there are only keys
  mnk_kv_codec values;      // bits 0: the codec of keys
  uint64_t value_head_dim;  // 0: as head_dim
  uint64_t heads;
  uint64_t capacity;
  uint64_t sequences;  // 0 is 1
} mnk_quantized_cache_extents;

// Codes and scales of all keys and values together.
bool mnk_quantized_cache_get_byte_count(const mnk_quantized_cache_extents* extents, uint64_t* bytes,
                                        mnk_error_out error);

// How vectors are quantized where the format allows a choice; readers do not need it. Zeros are the defaults.
typedef enum MNK_CLOSED(mnk_kv_scale_rule) {
  MNK_SCALE_DEFAULT = 0,  // unbiased for keys, least squares for values
  MNK_SCALE_UNBIASED = 1,
  MNK_SCALE_LEAST_SQUARES = 2,
} mnk_kv_scale_rule;
// What becomes of a vector that holds a NaN or an infinity.
typedef enum MNK_CLOSED(mnk_kv_non_finite) {
  MNK_NON_FINITE_PROPAGATE = 0,  // its scale is NaN, and so is what is computed with the vector
  MNK_NON_FINITE_ZERO = 1,       // it is stored as zero
} mnk_kv_non_finite;

typedef struct mnk_kv_quantize_options {
  uint32_t candidates;  // turbo: 1, 5 or 17; 0 is 5
  mnk_kv_scale_rule key_scale;
  mnk_kv_scale_rule value_scale;
  mnk_kv_non_finite non_finite;
} mnk_kv_quantize_options;

MNK_HEADER_END

#endif
