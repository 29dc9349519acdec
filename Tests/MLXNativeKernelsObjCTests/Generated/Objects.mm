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
  object.output = objectOver(core.output);
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

id<MNKFlashDecodeCache> objectFor(const FlashDecode::Cache &core) {
  if (const auto *one = std::get_if<0>(&core)) return objectFor(*one);
  return objectFor(std::get<1>(core));
}

MNKFlashDecode *objectFor(const FlashDecode &core) {
  MNKFlashDecode *object = [[MNKFlashDecode alloc] initWithQueries:objectFor(core.queries)
                                                             cache:objectFor(core.cache)
                                                         sequences:objectsFor(core.sequences)
                                                           results:objectFor(core.results)];
  object.options = objectFor(core.options);
  object.scratch = objectOver(core.scratch);
  return object;
}

MNKMergePartials *objectFor(const MergePartials &core) {
  MNKMergePartials *object = [[MNKMergePartials alloc] initWithParts:objectFor(core.parts)
                                                             results:objectFor(core.results)];
  object.sinks = objectOver(core.sinks);
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

MNKKVCacheWriteRows *objectFor(const KVCacheWrite::Rows &core) {
  MNKKVCacheWriteRows *object = [[MNKKVCacheWriteRows alloc] initWithSequences:objectFor(core.sequences)
                                                                     positions:objectFor(core.positions)];
  return object;
}

MNKKVCacheQuantize *objectFor(const KVCacheQuantize &core) {
  MNKKVCacheQuantize *object = [[MNKKVCacheQuantize alloc] initWithKeys:objectFor(core.keys)
                                                                 values:core.values ? objectFor(*core.values) : nil
                                                            destination:objectFor(core.into)
                                                               position:core.position];
  object.sourceLayout = static_cast<MNKKVLayout>(c::write(core.sourceLayout));
  object.sourceOffset = core.sourceOffset;
  object.tokens = core.tokens ? @(*core.tokens) : nil;
  object.sourceIsRing = core.sourceIsRing;
  object.sequence = sequenceFrom(core.sequence);
  object.rows = core.rows ? objectFor(*core.rows) : nil;
  object.options = objectFor(core.options);
  object.counts = objectOver(core.counts);
  object.probe = objectOver(core.probe);
  return object;
}

MNKKVCacheDequantize *objectFor(const KVCacheDequantize &core) {
  MNKKVCacheDequantize *object = [[MNKKVCacheDequantize alloc] initWithSource:objectFor(core.from)
                                                                         keys:objectOver(core.keys)
                                                                       values:objectOver(core.values)
                                                                     position:core.position];
  object.sequence = sequenceFrom(core.sequence);
  object.layout = static_cast<MNKKVLayout>(c::write(core.layout));
  object.domain = static_cast<MNKKVDomain>(c::write(core.domain));
  return object;
}

MNKHadamard *objectFor(const Hadamard &core) {
  MNKHadamard *object = [[MNKHadamard alloc] initWithSource:(MNKTensor *_Nonnull)objectOver(core.from)
                                                destination:objectOver(core.into)];
  object.signs = core.signs ? @(c::write(*core.signs)) : nil;
  object.inverse = core.isInverse;
  return object;
}

MNKKVCacheWrite *objectFor(const KVCacheWrite &core) {
  MNKKVCacheWrite *object = [[MNKKVCacheWrite alloc] initWithKeys:objectFor(core.keys)
                                                           values:core.values ? objectFor(*core.values) : nil
                                                      destination:objectFor(core.into)
                                                         position:core.position];
  object.sourceLayout = static_cast<MNKKVLayout>(c::write(core.sourceLayout));
  object.sourceOffset = core.sourceOffset;
  object.tokens = core.tokens ? @(*core.tokens) : nil;
  object.sourceIsRing = core.sourceIsRing;
  object.sequence = sequenceFrom(core.sequence);
  object.rows = core.rows ? objectFor(*core.rows) : nil;
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

MNKRotaryStep *objectFor(const RotaryStep &core) {
  MNKRotaryStep *object = [[MNKRotaryStep alloc] initWithEmbedding:objectFor(core.embedding)];
  object.positions = core.positions ? objectFor(*core.positions) : nil;
  object.offsets = core.offsets ? objectFor(*core.offsets) : nil;
  return object;
}

MNKMultiRoPE *objectFor(const MultiRoPE &core) {
  MNKMultiRoPE *object = [[MNKMultiRoPE alloc] initWithQueries:objectFor(core.queries)
                                                          keys:core.keys ? objectFor(*core.keys) : nil
                                                     positions:objectFor(core.positions)
                                                        rotary:objectFor(core.rotary)];
  object.rotatedQueries = core.rotatedQueries ? objectFor(*core.rotatedQueries) : nil;
  object.rotatedKeys = core.rotatedKeys ? objectFor(*core.rotatedKeys) : nil;
  object.offsets = core.offsets ? objectFor(*core.offsets) : nil;
  return object;
}

}  // namespace mnk::objc_test
