// Generated from Sources/API by generate.py: change the description instead.
// What a cache stores, and what it serves.
#ifndef MNK_CACHE_STORAGE_H
#define MNK_CACHE_STORAGE_H

#include "MLXNativeKernels/Generated/mnk_basics.h"
#include "MLXNativeKernels/Generated/mnk_cache_views.h"
#include "MLXNativeKernels/Generated/mnk_quantized_views.h"
#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

// What of a cache is quantized. The rest is dense, with the descriptor's element type.
typedef enum MNK_CLOSED(mnk_kv_quantized_planes) {
  // Keys and values.
  MNK_KV_QUANTIZED_PLANES_BOTH = 0,
  // Keys.
  MNK_KV_QUANTIZED_PLANES_KEYS = 1,
  // Values.
  MNK_KV_QUANTIZED_PLANES_VALUES = 2,
} mnk_kv_quantized_planes;

// What a sliding-window cache must serve exactly: steps of up to `max_rows` rows that each see `window` positions, also
// after a rollback of up to `max_draft` of the newest tokens.
//
// A step of several rows sees `window + max_rows - 1` positions, and a rollback of n tokens has lost n positions. The
// cache has slots for the larger of the two.
typedef struct mnk_sliding_window {
  // How many positions a row sees, including its own.
  uint32_t window;
  // The most rows of one step, or of one chunk of a longer prompt; 0 means the default, 64.
  uint32_t max_rows;
  // The most tokens that are rolled back at a time.
  uint32_t max_draft;
} mnk_sliding_window;

// How attention chooses kernels, splits and sizes of threadgroups. The choice changes the last bits of results.
typedef enum MNK_CLOSED(mnk_tuning) {
  // By a table that comes with the library. Choices that an earlier call measured stay in use.
  MNK_TUNING_TABLE = 0,
  // By measuring on this device, for some tens of milliseconds for each shape. The choices are kept in a file by
  // device, version of the system and kernels, and not measured again. Until that file changes, results are the same
  // from run to run, bit for bit.
  MNK_TUNING_MEASURE = 1,
} mnk_tuning;

// How a cache quantizes what is appended. Means and channel scales are for turbo only. They are copied when the cache
// is made, so that their sources may be changed afterwards; the copies may not, while the cache holds anything.
typedef struct mnk_kv_quantized_storage {
  // Which codec.
  mnk_kv_codec_name codec;
  // Bits of one code of a key. Those of a dense plane are ignored, and read as 0. The other languages' default is 4.
  uint32_t key_bits;
  // Bits of one code of a value. The other languages' default is 4.
  uint32_t value_bits;
  // For mlx1 and mlx1Unrotated at a head dim of 512. 0 stands for 1.
  float scale_factor;
  // How vectors are quantized where the format allows a choice.
  mnk_kv_quantize_options options;
  // f32, `[kvHeads, headDim]`.
  mnk_tensor* MNK_NULLABLE key_means;
  // f32, `[kvHeads, valueHeadDim]`.
  mnk_tensor* MNK_NULLABLE value_means;
  // f32, `[kvHeads, headDim]`, none of them 0.
  mnk_tensor* MNK_NULLABLE key_channel_scales;
  // What of the cache is quantized.
  mnk_kv_quantized_planes planes;
} mnk_kv_quantized_storage;

// The extents of a cache, and how it stores.
typedef struct mnk_attention_cache_descriptor {
  // Heads of keys and values.
  uint32_t kv_heads;
  // Elements of a key of one head.
  uint32_t head_dim;
  // Elements of a value of one head; 0 means those of a key, or of its latent part.
  uint32_t value_head_dim;
  // Slots of one sequence; 0 means the number that the sliding window needs.
  uint32_t capacity;
  // Sequences that are kept side by side. The other languages' default is 1.
  uint32_t sequences;
  // A float type. If keys and values are both quantized, it is ignored, and reads as u8. The other languages' default
  // is `MNK_F16`.
  mnk_dtype dtype;
  // What an append does when every slot is taken: it fails, or the newest tokens take the slots of the oldest.
  mnk_kv_wrap when_full;
  // First positions that a ring never overwrites.
  uint32_t pinned;
  // Whether `quantized` is used. Otherwise, all of it must be 0.
  bool has_quantized;
  // How keys, values or both are quantized; no `has_quantized` for a dense cache.
  mnk_kv_quantized_storage quantized;
  // Whether `sliding_window` is used. Otherwise, all of it must be 0.
  bool has_sliding_window;
  // Makes a ring that serves this window, with the slots that it needs unless `capacity` is larger. Rows that attend
  // without their own window use this one.
  mnk_sliding_window sliding_window;
  // Makes a latent cache (multi-head latent attention): what is appended as values is also the first part of keys, of
  // this length, and what is appended as keys is the rest of them, rotated already. Queries are those of absorbed
  // attention, with the elements of both together, and attention needs a scale. 0 if keys and values are separate.
  uint32_t latent_dim;
  // Whether the cache only stores, so that it may have any head dims.
  bool is_storage_only;
} mnk_attention_cache_descriptor;

MNK_HEADER_END

#endif
