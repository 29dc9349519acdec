// Generated from Sources/API by generate.py: change the description instead.
#pragma once
#import "../Support/Bridging.hpp"

NS_ASSUME_NONNULL_BEGIN

namespace mnk::objc_test {

MNKAttentionOptions* objectFor(const AttentionOptions& core);
MNKAttentionPartials* objectFor(const AttentionPartials& core);
MNKAttentionResults* objectFor(const AttentionResults& core);
MNKAttendedSequence* objectFor(const AttendedSequence& core);
MNKSlidingWindow* objectFor(const SlidingWindow& core);
MNKKVQuantizeOptions* objectFor(const KVQuantizeOptions& core);
MNKKVQuantizedStorage* objectFor(const KVQuantizedStorage& core);
MNKAttentionCacheDescriptor* objectFor(const AttentionCacheDescriptor& core);
MNKHeadsViewStrides* objectFor(const HeadsView::Strides& core);
MNKHeadsView* objectFor(const HeadsView& core);
MNKKVCacheView* objectFor(const KVCacheView& core);
MNKKVCodec* objectFor(const KVCodec& core);
MNKQuantizedKVPlane* objectFor(const QuantizedKVPlane& core);
MNKQuantizedKVCacheView* objectFor(const QuantizedKVCacheView& core);
id<MNKFlashDecodeCache> objectFor(const FlashDecode::Cache& core);
MNKFlashDecode* objectFor(const FlashDecode& core);
MNKMergePartials* objectFor(const MergePartials& core);
MNKHostOptions* objectFor(const HostOptions& core);
MNKKVCacheWriteRows* objectFor(const KVCacheWrite::Rows& core);
MNKKVCacheQuantize* objectFor(const KVCacheQuantize& core);
MNKKVCacheDequantize* objectFor(const KVCacheDequantize& core);
MNKHadamard* objectFor(const Hadamard& core);
MNKKVCacheWrite* objectFor(const KVCacheWrite& core);
MNKRotaryEmbeddingYaRN* objectFor(const RotaryEmbedding::YaRN& core);
MNKRotaryEmbedding* objectFor(const RotaryEmbedding& core);
MNKRotaryStep* objectFor(const RotaryStep& core);
MNKMultiRoPE* objectFor(const MultiRoPE& core);

}  // namespace mnk::objc_test

NS_ASSUME_NONNULL_END
