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
MNKHostOptions* objectFor(const HostOptions& core);
MNKKVCodec* objectFor(const KVCodec& core);
MNKQuantizedKVPlane* objectFor(const QuantizedKVPlane& core);
MNKQuantizedKVCacheView* objectFor(const QuantizedKVCacheView& core);
MNKRotaryEmbeddingYaRN* objectFor(const RotaryEmbedding::YaRN& core);
MNKRotaryEmbedding* objectFor(const RotaryEmbedding& core);

}  // namespace mnk::objc_test

NS_ASSUME_NONNULL_END
