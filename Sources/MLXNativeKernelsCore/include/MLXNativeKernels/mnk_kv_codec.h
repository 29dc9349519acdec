// The C API to codecs: how vectors of a quantized cache are encoded, and their sizes. KVCodec.hpp defines them. A codec
// that is zero but for its bits is turbo.
#ifndef MNK_KV_CODEC_H
#define MNK_KV_CODEC_H

#include "MLXNativeKernels/Generated/mnk_quantized_views.h"
#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

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

MNK_HEADER_END

#endif
