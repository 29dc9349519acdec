// Generated from Sources/API by generate.py: change the description instead.
// Reads objects into structs of C, whose lists belong to the reading, and makes objects of the core's structs.
#pragma once
#import "ObjC/Core.hpp"

NS_ASSUME_NONNULL_BEGIN

namespace mnk::objc {

mnk_attention_options structFrom(Reading& reading, MNKAttentionOptions* _Nullable object, std::string_view name);
MNKAttentionOptions* objectFrom(const AttentionOptions& core);
mnk_attention_options_kernel enumFrom(Reading& reading, MNKAttentionOptionsKernel value, std::string_view name);
mnk_attention_options_merge enumFrom(Reading& reading, MNKAttentionOptionsMerge value, std::string_view name);
mnk_attention_partials structFrom(Reading& reading, MNKAttentionPartials* _Nullable object, std::string_view name);
MNKAttentionPartials* objectFrom(const AttentionPartials& core);
mnk_attention_results structFrom(Reading& reading, MNKAttentionResults* _Nullable object, std::string_view name);
MNKAttentionResults* objectFrom(const AttentionResults& core);
mnk_attended_sequence structFrom(Reading& reading, MNKAttendedSequence* _Nullable object, std::string_view name);
MNKAttendedSequence* objectFrom(const AttendedSequence& core);
mnk_dtype enumFrom(Reading& reading, MNKElementType value, std::string_view name);
mnk_access enumFrom(Reading& reading, MNKAccess value, std::string_view name);
mnk_kv_quantized_planes enumFrom(Reading& reading, MNKKVQuantizedPlanes value, std::string_view name);
mnk_sliding_window structFrom(Reading& reading, MNKSlidingWindow* _Nullable object, std::string_view name);
MNKSlidingWindow* objectFrom(const SlidingWindow& core);
mnk_tuning enumFrom(Reading& reading, MNKTuning value, std::string_view name);
mnk_kv_quantized_storage structFrom(Reading& reading, MNKKVQuantizedStorage* _Nullable object, std::string_view name);
MNKKVQuantizedStorage* objectFrom(const KVQuantizedStorage& core);
mnk_attention_cache_descriptor structFrom(Reading& reading, MNKAttentionCacheDescriptor* _Nullable object,
                                          std::string_view name);
MNKAttentionCacheDescriptor* objectFrom(const AttentionCacheDescriptor& core);
mnk_kv_layout enumFrom(Reading& reading, MNKKVLayout value, std::string_view name);
mnk_kv_wrap enumFrom(Reading& reading, MNKKVWrap value, std::string_view name);
mnk_heads_view_strides structFrom(Reading& reading, MNKHeadsViewStrides* _Nullable object, std::string_view name);
MNKHeadsViewStrides* objectFrom(const HeadsView::Strides& core);
mnk_heads_view structFrom(Reading& reading, MNKHeadsView* _Nullable object, std::string_view name);
MNKHeadsView* objectFrom(const HeadsView& core);
mnk_kv_cache_view structFrom(Reading& reading, MNKKVCacheView* _Nullable object, std::string_view name);
MNKKVCacheView* objectFrom(const KVCacheView& core);
mnk_flash_decode_cache structFrom(Reading& reading, id<MNKFlashDecodeCache> _Nullable object, std::string_view name);
mnk_flash_decode structFrom(Reading& reading, MNKFlashDecode* _Nullable object, std::string_view name);
mnk_merge_partials structFrom(Reading& reading, MNKMergePartials* _Nullable object, std::string_view name);
mnk_host_options_level enumFrom(Reading& reading, MNKHostOptionsLevel value, std::string_view name);
mnk_host_options_checking enumFrom(Reading& reading, MNKHostOptionsChecking value, std::string_view name);
mnk_host_options structFrom(Reading& reading, MNKHostOptions* _Nullable object, std::string_view name);
MNKHostOptions* objectFrom(const HostOptions& core);
mnk_kv_cache_quantize structFrom(Reading& reading, MNKKVCacheQuantize* _Nullable object, std::string_view name);
mnk_kv_cache_dequantize structFrom(Reading& reading, MNKKVCacheDequantize* _Nullable object, std::string_view name);
mnk_hadamard structFrom(Reading& reading, MNKHadamard* _Nullable object, std::string_view name);
mnk_kv_cache_write_rows structFrom(Reading& reading, MNKKVCacheWriteRows* _Nullable object, std::string_view name);
mnk_kv_cache_write structFrom(Reading& reading, MNKKVCacheWrite* _Nullable object, std::string_view name);
mnk_rotary_step structFrom(Reading& reading, MNKRotaryStep* _Nullable object, std::string_view name);
mnk_multi_rope structFrom(Reading& reading, MNKMultiRoPE* _Nullable object, std::string_view name);
mnk_kv_codec_name enumFrom(Reading& reading, MNKKVCodecName value, std::string_view name);
mnk_kv_codec structFrom(Reading& reading, MNKKVCodec* _Nullable object, std::string_view name);
MNKKVCodec* objectFrom(const KVCodec& core);
mnk_kv_scale_rule enumFrom(Reading& reading, MNKKVScaleRule value, std::string_view name);
mnk_kv_non_finite enumFrom(Reading& reading, MNKKVNonFinite value, std::string_view name);
mnk_kv_domain enumFrom(Reading& reading, MNKKVDomain value, std::string_view name);
mnk_kv_quantize_options structFrom(Reading& reading, MNKKVQuantizeOptions* _Nullable object, std::string_view name);
MNKKVQuantizeOptions* objectFrom(const KVQuantizeOptions& core);
mnk_quantized_kv_plane structFrom(Reading& reading, MNKQuantizedKVPlane* _Nullable object, std::string_view name);
MNKQuantizedKVPlane* objectFrom(const QuantizedKVPlane& core);
mnk_quantized_kv_cache_view structFrom(Reading& reading, MNKQuantizedKVCacheView* _Nullable object,
                                       std::string_view name);
MNKQuantizedKVCacheView* objectFrom(const QuantizedKVCacheView& core);
mnk_rotary_embedding_layout enumFrom(Reading& reading, MNKRotaryEmbeddingLayout value, std::string_view name);
mnk_rotary_embedding_pairing enumFrom(Reading& reading, MNKRotaryEmbeddingPairing value, std::string_view name);
mnk_rotary_embedding_other_axis enumFrom(Reading& reading, MNKRotaryEmbeddingOtherAxis value, std::string_view name);
mnk_rotary_embedding_yarn structFrom(Reading& reading, MNKRotaryEmbeddingYaRN* _Nullable object, std::string_view name);
MNKRotaryEmbeddingYaRN* objectFrom(const RotaryEmbedding::YaRN& core);
mnk_rotary_embedding structFrom(Reading& reading, MNKRotaryEmbedding* _Nullable object, std::string_view name);
MNKRotaryEmbedding* objectFrom(const RotaryEmbedding& core);

}  // namespace mnk::objc

NS_ASSUME_NONNULL_END
