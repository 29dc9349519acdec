// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "Support/Errors.hpp"

namespace mnk::c {

Result<void> read(KVQuantizedPlanes& into, mnk_kv_quantized_planes from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_KV_QUANTIZED_PLANES_BOTH:
      into = KVQuantizedPlanes::both;
      return {};
    case MNK_KV_QUANTIZED_PLANES_KEYS:
      into = KVQuantizedPlanes::keys;
      return {};
    case MNK_KV_QUANTIZED_PLANES_VALUES:
      into = KVQuantizedPlanes::values;
      return {};
  }
  return unknownNumber("mnk_kv_quantized_planes", from,
                       "MNK_KV_QUANTIZED_PLANES_BOTH to MNK_KV_QUANTIZED_PLANES_VALUES");
}

bool isFilled(const mnk_sliding_window& from) {
  return from.window != 0 || from.max_rows != 0 || from.max_draft != 0;
}

Result<void> read(SlidingWindow& into, const mnk_sliding_window& from, const Field&) {
  into.window = from.window;
  into.maxRows = from.max_rows;
  into.maxDraft = from.max_draft;
  return {};
}

Result<void> read(Tuning& into, mnk_tuning from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_TUNING_TABLE:
      into = Tuning::table;
      return {};
    case MNK_TUNING_MEASURE:
      into = Tuning::measure;
      return {};
  }
  return unknownNumber("mnk_tuning", from, "MNK_TUNING_TABLE to MNK_TUNING_MEASURE");
}

bool isFilled(const mnk_kv_quantized_storage& from) {
  return from.codec != 0 || from.key_bits != 0 || from.value_bits != 0 || from.scale_factor != 0 ||
         isFilled(from.options) || from.key_means || from.value_means || from.key_channel_scales || from.planes != 0;
}

Result<void> read(KVQuantizedStorage& into, const mnk_kv_quantized_storage& from, const Field& field) {
  MNK_TRY(read(into.codec, from.codec));
  into.keyBits = from.key_bits;
  into.valueBits = from.value_bits;
  if (from.scale_factor != 0) into.scaleFactor = from.scale_factor;
  MNK_TRY(read(into.options, from.options, {&field, "options"}));
  into.keyMeans = optional(from.key_means);
  into.valueMeans = optional(from.value_means);
  into.keyChannelScales = optional(from.key_channel_scales);
  MNK_TRY(read(into.planes, from.planes));
  return {};
}

Result<void> read(AttentionCacheDescriptor& into, const mnk_attention_cache_descriptor& from, const Field& field) {
  into.kvHeads = from.kv_heads;
  into.headDim = from.head_dim;
  into.valueHeadDim = from.value_head_dim;
  into.capacity = from.capacity;
  into.sequences = from.sequences;
  MNK_TRY(read(into.dtype, from.dtype));
  MNK_TRY(read(into.whenFull, from.when_full));
  into.pinned = from.pinned;
  if (from.has_quantized) {
    MNK_TRY(read(into.quantized.emplace(), from.quantized, {&field, "quantized"}));
  } else if (isFilled(from.quantized)) {
    return ignored("mnk_attention_cache_descriptor", Field{&field, "quantized"}.text(), "has_quantized");
  }
  if (from.has_sliding_window) {
    MNK_TRY(read(into.slidingWindow.emplace(), from.sliding_window, {&field, "sliding_window"}));
  } else if (isFilled(from.sliding_window)) {
    return ignored("mnk_attention_cache_descriptor", Field{&field, "sliding_window"}.text(), "has_sliding_window");
  }
  into.latentDim = from.latent_dim;
  into.isStorageOnly = from.is_storage_only;
  return {};
}

}  // namespace mnk::c
