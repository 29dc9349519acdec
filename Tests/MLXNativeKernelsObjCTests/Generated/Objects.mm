// Generated from Sources/API by generate.py: change the description instead.
#import "Objects.hpp"
#include "CAPI/Generated/Write.hpp"

namespace mnk::objc_test {

MNKAttentionOptions *objectFor(const AttentionOptions &core) {
  MNKAttentionOptions *object = [[MNKAttentionOptions alloc] init];
  object.scale = core.scale;
  object.causal = core.isCausal;
  object.window = core.window;
  object.windowSeesPinned = core.windowSeesPinned;
  object.softcap = core.softcap;
  object.mask = objectOver(core.mask);
  object.slopes = objectOver(core.slopes);
  object.sinks = objectOver(core.sinks);
  object.splits = core.splits;
  object.kernel = static_cast<MNKAttentionOptionsKernel>(c::write(core.kernel));
  object.merge = static_cast<MNKAttentionOptionsMerge>(c::write(core.merge));
  return object;
}

MNKAttentionPartials *objectFor(const AttentionPartials &core) {
  MNKAttentionPartials *object =
      [[MNKAttentionPartials alloc] initWithSums:(MNKTensor *_Nonnull)objectOver(core.sums)
                                           stats:(MNKTensor *_Nonnull)objectOver(core.stats)];
  return object;
}

MNKAttentionResults *objectFor(const AttentionResults &core) {
  MNKAttentionResults *object = [[MNKAttentionResults alloc] init];
  object.output = objectOver(core.into);
  object.partials = core.partials ? objectFor(*core.partials) : nil;
  object.logSumExp = objectOver(core.logSumExp);
  return object;
}

MNKAttendedSequence *objectFor(const AttendedSequence &core) {
  MNKAttendedSequence *object = [[MNKAttendedSequence alloc] initWithSequence:sequenceFrom(core.sequence)
                                                                       length:core.length
                                                                      highest:core.highest
                                                                         rows:core.rows
                                                                     position:core.position ? @(*core.position) : nil];
  return object;
}

MNKSlidingWindow *objectFor(const SlidingWindow &core) {
  MNKSlidingWindow *object = [[MNKSlidingWindow alloc] initWithWindow:core.window
                                                              maxRows:core.maxRows
                                                             maxDraft:core.maxDraft];
  return object;
}

MNKKVQuantizeOptions *objectFor(const KVQuantizeOptions &core) {
  MNKKVQuantizeOptions *object = [[MNKKVQuantizeOptions alloc] init];
  object.candidates = core.candidates;
  object.keyScale = static_cast<MNKKVScaleRule>(c::write(core.keyScale));
  object.valueScale = static_cast<MNKKVScaleRule>(c::write(core.valueScale));
  object.nonFinite = static_cast<MNKKVNonFinite>(c::write(core.nonFinite));
  return object;
}

MNKKVQuantizedStorage *objectFor(const KVQuantizedStorage &core) {
  MNKKVQuantizedStorage *object =
      [[MNKKVQuantizedStorage alloc] initWithCodec:static_cast<MNKKVCodecName>(c::write(core.codec))
                                           keyBits:core.keyBits
                                         valueBits:core.valueBits];
  object.scaleFactor = core.scaleFactor;
  object.options = objectFor(core.options);
  object.keyMeans = objectOver(core.keyMeans);
  object.valueMeans = objectOver(core.valueMeans);
  object.keyChannelScales = objectOver(core.keyChannelScales);
  object.planes = static_cast<MNKKVQuantizedPlanes>(c::write(core.planes));
  return object;
}

MNKAttentionCacheDescriptor *objectFor(const AttentionCacheDescriptor &core) {
  MNKAttentionCacheDescriptor *object = [[MNKAttentionCacheDescriptor alloc] initWithKVHeads:core.kvHeads
                                                                                     headDim:core.headDim
                                                                                    capacity:core.capacity];
  object.valueHeadDim = core.valueHeadDim;
  object.sequences = core.sequences;
  object.elementType = static_cast<MNKElementType>(c::write(core.dtype));
  object.whenFull = static_cast<MNKKVWrap>(c::write(core.whenFull));
  object.pinned = core.pinned;
  object.quantized = core.quantized ? objectFor(*core.quantized) : nil;
  object.slidingWindow = core.slidingWindow ? objectFor(*core.slidingWindow) : nil;
  object.latentDim = core.latentDim;
  object.storageOnly = core.isStorageOnly;
  return object;
}

MNKHeadsViewStrides *objectFor(const HeadsView::Strides &core) {
  MNKHeadsViewStrides *object = [[MNKHeadsViewStrides alloc] init];
  object.sequences = core.sequences;
  object.tokens = core.tokens;
  object.heads = core.heads;
  object.headDim = core.headDim;
  object.offset = core.offset;
  object.sequenceStride = core.sequenceStride;
  object.tokenStride = core.tokenStride;
  object.headStride = core.headStride;
  return object;
}

MNKHeadsView *objectFor(const HeadsView &core) {
  MNKHeadsView *object = [[MNKHeadsView alloc] initWithTensor:(MNKTensor *_Nonnull)objectOver(core.tensor)];
  object.layout = static_cast<MNKKVLayout>(c::write(core.layout));
  object.strides = core.strides ? objectFor(*core.strides) : nil;
  return object;
}

MNKKVCacheView *objectFor(const KVCacheView &core) {
  MNKKVCacheView *object = [[MNKKVCacheView alloc] initWithKeys:(MNKTensor *_Nonnull)objectOver(core.keys)
                                                         values:objectOver(core.values)];
  object.layout = static_cast<MNKKVLayout>(c::write(core.layout));
  object.wrap = static_cast<MNKKVWrap>(c::write(core.wrap));
  object.pinned = core.pinned;
  object.latentDim = core.latentDim;
  return object;
}

MNKHostOptions *objectFor(const HostOptions &core) {
  MNKHostOptions *object = [[MNKHostOptions alloc] init];
  object.workers = core.workers;
  object.orderSeed = core.orderSeed;
  object.checking = static_cast<MNKHostOptionsChecking>(c::write(core.checking));
  object.allowsSameValue = core.allowsSameValue;
  object.perturbsResults = core.perturbsResults;
  object.level = static_cast<MNKHostOptionsLevel>(c::write(core.level));
  object.compiler = core.compiler.empty() ? nil : stringFrom(core.compiler);
  return object;
}

MNKKVCodec *objectFor(const KVCodec &core) {
  MNKKVCodec *object = [[MNKKVCodec alloc] initWithName:static_cast<MNKKVCodecName>(c::write(core.name))
                                                   bits:core.bits];
  object.scaleFactor = core.scaleFactor;
  return object;
}

MNKQuantizedKVPlane *objectFor(const QuantizedKVPlane &core) {
  MNKQuantizedKVPlane *object = [[MNKQuantizedKVPlane alloc] initWithCodec:objectFor(core.codec)
                                                                     codes:(MNKTensor *_Nonnull)objectOver(core.codes)
                                                                    scales:objectOver(core.scales)];
  object.means = objectOver(core.means);
  object.channelScales = objectOver(core.channelScales);
  return object;
}

MNKQuantizedKVCacheView *objectFor(const QuantizedKVCacheView &core) {
  MNKQuantizedKVCacheView *object =
      [[MNKQuantizedKVCacheView alloc] initWithKeys:objectFor(core.keys)
                                             values:core.values ? objectFor(*core.values) : nil];
  object.layout = static_cast<MNKKVLayout>(c::write(core.layout));
  object.wrap = static_cast<MNKKVWrap>(c::write(core.wrap));
  object.pinned = core.pinned;
  object.latentDim = core.latentDim;
  return object;
}

MNKRotaryEmbeddingYaRN *objectFor(const RotaryEmbedding::YaRN &core) {
  MNKRotaryEmbeddingYaRN *object = [[MNKRotaryEmbeddingYaRN alloc] initWithOriginalContext:core.originalContext];
  object.extensionFactor = core.extensionFactor;
  object.attentionFactor = core.attentionFactor;
  object.betaFast = core.betaFast;
  object.betaSlow = core.betaSlow;
  object.roundsCorners = core.roundsCorners;
  return object;
}

MNKRotaryEmbedding *objectFor(const RotaryEmbedding &core) {
  MNKRotaryEmbedding *object = [[MNKRotaryEmbedding alloc] init];
  object.layout = static_cast<MNKRotaryEmbeddingLayout>(c::write(core.layout));
  object.sections = numbersFrom(core.sections);
  object.base = core.base;
  object.ropeDim = core.ropeDim;
  object.pairing = static_cast<MNKRotaryEmbeddingPairing>(c::write(core.pairing));
  object.otherAxis = static_cast<MNKRotaryEmbeddingOtherAxis>(c::write(core.otherAxis));
  object.scale = core.scale;
  object.frequencyFactors = numbersFrom(core.frequencyFactors);
  object.yarn = core.yarn ? objectFor(*core.yarn) : nil;
  object.inverse = core.isInverse;
  return object;
}

}  // namespace mnk::objc_test
