// Generated from Sources/API by generate.py: change the description instead.
// Reads structs of C into those of C++. Zero, where it stands for a default, leaves a field as it is.
#pragma once
#include "CAPI/Indices.hpp"

namespace mnk::c {

Result<void> read(AttentionOptions& into, const mnk_attention_options& from, const Field& field);
Result<void> read(AttentionOptions::Kernel& into, mnk_attention_options_kernel from);
Result<void> read(AttentionOptions::Merge& into, mnk_attention_options_merge from);
Result<void> read(AttentionPartials& into, const mnk_attention_partials& from, const Field& field);
// Whether anything is not zero.
bool isFilled(const mnk_attention_partials& from);
Result<void> read(AttentionResults& into, const mnk_attention_results& from, const Field& field);
Result<void> read(AttendedSequence& into, const mnk_attended_sequence& from, const Field& field);
Result<void> read(DType& into, mnk_dtype from);
Result<void> read(Access& into, mnk_access from);
Result<void> read(KVQuantizedPlanes& into, mnk_kv_quantized_planes from);
Result<void> read(SlidingWindow& into, const mnk_sliding_window& from, const Field& field);
// Whether anything is not zero.
bool isFilled(const mnk_sliding_window& from);
Result<void> read(Tuning& into, mnk_tuning from);
Result<void> read(KVQuantizedStorage& into, const mnk_kv_quantized_storage& from, const Field& field);
// Whether anything is not zero.
bool isFilled(const mnk_kv_quantized_storage& from);
Result<void> read(AttentionCacheDescriptor& into, const mnk_attention_cache_descriptor& from, const Field& field);
Result<void> read(KVLayout& into, mnk_kv_layout from);
Result<void> read(KVWrap& into, mnk_kv_wrap from);
Result<void> read(HeadsView::Strides& into, const mnk_heads_view_strides& from, const Field& field);
// Whether anything is not zero.
bool isFilled(const mnk_heads_view_strides& from);
Result<void> read(HeadsView& into, const mnk_heads_view& from, const Field& field);
// Whether anything is not zero.
bool isFilled(const mnk_heads_view& from);
Result<void> read(KVCacheView& into, const mnk_kv_cache_view& from, const Field& field);
// Whether anything is not zero.
bool isFilled(const mnk_kv_cache_view& from);
Result<void> read(FlashDecode::Cache& into, const mnk_flash_decode_cache& from, const Field& field);
Result<void> read(FlashDecode& into, const mnk_flash_decode& from, const Field& field);
Result<void> read(MergePartials& into, const mnk_merge_partials& from, const Field& field);
Result<void> read(HostOptions::Level& into, mnk_host_options_level from);
Result<void> read(HostOptions::Checking& into, mnk_host_options_checking from);
Result<void> read(HostOptions& into, const mnk_host_options& from, const Field& field);
Result<void> read(KVCacheQuantize& into, const mnk_kv_cache_quantize& from, const Field& field);
Result<void> read(KVCacheDequantize& into, const mnk_kv_cache_dequantize& from, const Field& field);
Result<void> read(Hadamard& into, const mnk_hadamard& from, const Field& field);
Result<void> read(KVCacheWrite::Rows& into, const mnk_kv_cache_write_rows& from, const Field& field);
// Whether anything is not zero.
bool isFilled(const mnk_kv_cache_write_rows& from);
Result<void> read(KVCacheWrite& into, const mnk_kv_cache_write& from, const Field& field);
Result<void> read(RotaryStep& into, const mnk_rotary_step& from, const Field& field);
// Whether anything is not zero.
bool isFilled(const mnk_rotary_step& from);
Result<void> read(MultiRoPE& into, const mnk_multi_rope& from, const Field& field);
Result<void> read(KVCodec::Name& into, mnk_kv_codec_name from);
Result<void> read(KVCodec& into, const mnk_kv_codec& from, const Field& field);
// Whether anything is not zero.
bool isFilled(const mnk_kv_codec& from);
Result<void> read(KVScaleRule& into, mnk_kv_scale_rule from);
Result<void> read(KVNonFinite& into, mnk_kv_non_finite from);
Result<void> read(KVDomain& into, mnk_kv_domain from);
Result<void> read(KVQuantizeOptions& into, const mnk_kv_quantize_options& from, const Field& field);
// Whether anything is not zero.
bool isFilled(const mnk_kv_quantize_options& from);
Result<void> read(QuantizedKVPlane& into, const mnk_quantized_kv_plane& from, const Field& field);
// Whether anything is not zero.
bool isFilled(const mnk_quantized_kv_plane& from);
Result<void> read(QuantizedKVCacheView& into, const mnk_quantized_kv_cache_view& from, const Field& field);
// Whether anything is not zero.
bool isFilled(const mnk_quantized_kv_cache_view& from);
Result<void> read(RotaryEmbedding::Layout& into, mnk_rotary_embedding_layout from);
Result<void> read(RotaryEmbedding::Pairing& into, mnk_rotary_embedding_pairing from);
Result<void> read(RotaryEmbedding::OtherAxis& into, mnk_rotary_embedding_other_axis from);
Result<void> read(RotaryEmbedding::YaRN& into, const mnk_rotary_embedding_yarn& from, const Field& field);
// Whether anything is not zero.
bool isFilled(const mnk_rotary_embedding_yarn& from);
Result<void> read(RotaryEmbedding& into, const mnk_rotary_embedding& from, const Field& field);
// Whether anything is not zero.
bool isFilled(const mnk_rotary_embedding& from);

}  // namespace mnk::c
