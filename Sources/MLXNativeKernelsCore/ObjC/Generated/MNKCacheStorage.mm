// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Generated/Write.hpp"
#import "ObjC/Generated/Read.hpp"

using namespace mnk;

@implementation MNKSlidingWindow

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"window", @"maxRows", @"maxDraft" ];
}

- (instancetype)initWithWindow:(NSUInteger)window maxRows:(NSUInteger)maxRows maxDraft:(NSUInteger)maxDraft {
  if ((self = [super init])) {
    _window = window;
    _maxRows = maxRows;
    _maxDraft = maxDraft;
  }
  return self;
}

- (instancetype)initWithWindow:(NSUInteger)window {
  return [self initWithWindow:window maxRows:64 maxDraft:0];
}

@end

@implementation MNKKVQuantizedStorage

+ (NSArray<NSString *> *)valueKeys {
  return @[
    @"codec", @"keyBits", @"valueBits", @"scaleFactor", @"options", @"keyMeans", @"valueMeans", @"keyChannelScales",
    @"planes"
  ];
}

- (instancetype)initWithCodec:(MNKKVCodecName)codec keyBits:(NSUInteger)keyBits valueBits:(NSUInteger)valueBits {
  if ((self = [super init])) {
    _codec = codec;
    _keyBits = keyBits;
    _valueBits = valueBits;
    _scaleFactor = 1;
    _options = [[MNKKVQuantizeOptions alloc] init];
    _planes = MNKKVQuantizedPlanesBoth;
  }
  return self;
}

@end

@implementation MNKAttentionCacheDescriptor

+ (NSArray<NSString *> *)valueKeys {
  return @[
    @"kvHeads", @"headDim", @"valueHeadDim", @"capacity", @"sequences", @"elementType", @"whenFull", @"pinned",
    @"quantized", @"slidingWindow", @"latentDim", @"storageOnly"
  ];
}

- (instancetype)initWithKVHeads:(NSUInteger)kvHeads headDim:(NSUInteger)headDim capacity:(NSUInteger)capacity {
  if ((self = [super init])) {
    _kvHeads = kvHeads;
    _headDim = headDim;
    _capacity = capacity;
    _sequences = 1;
    _elementType = MNKElementTypeFloat16;
    _whenFull = MNKKVWrapLinear;
  }
  return self;
}

@end

namespace mnk::objc {

mnk_kv_quantized_planes enumFrom(Reading &reading, MNKKVQuantizedPlanes value, std::string_view name) {
  return reading.choice<mnk_kv_quantized_planes>(
      value, {MNK_KV_QUANTIZED_PLANES_BOTH, MNK_KV_QUANTIZED_PLANES_KEYS, MNK_KV_QUANTIZED_PLANES_VALUES}, name,
      "MNKKVQuantizedPlanes");
}

mnk_tuning enumFrom(Reading &reading, MNKTuning value, std::string_view name) {
  return reading.choice<mnk_tuning>(value, {MNK_TUNING_TABLE, MNK_TUNING_MEASURE}, name, "MNKTuning");
}

mnk_sliding_window structFrom(Reading &reading, MNKSlidingWindow *object, std::string_view name) {
  mnk_sliding_window into{};
  if (!reading.needed(object, name) || !reading.isA([MNKSlidingWindow class], object, name)) return into;
  into.window = reading.narrow(object.window, "window");
  into.max_rows = reading.narrow(object.maxRows, "maxRows");
  into.max_draft = reading.narrow(object.maxDraft, "maxDraft");
  return into;
}

MNKSlidingWindow *objectFrom(const SlidingWindow &core) {
  MNKSlidingWindow *object = [[MNKSlidingWindow alloc] initWithWindow:core.window
                                                              maxRows:core.maxRows
                                                             maxDraft:core.maxDraft];
  return object;
}

mnk_kv_quantized_storage structFrom(Reading &reading, MNKKVQuantizedStorage *object, std::string_view name) {
  mnk_kv_quantized_storage into{};
  if (!reading.needed(object, name) || !reading.isA([MNKKVQuantizedStorage class], object, name)) return into;
  into.codec = enumFrom(reading, object.codec, "codec");
  into.key_bits = reading.narrow(object.keyBits, "keyBits");
  into.value_bits = reading.narrow(object.valueBits, "valueBits");
  into.scale_factor = reading.nonzero(object.scaleFactor, "scaleFactor");
  into.options = structFrom(reading, object.options, "options");
  into.key_means = handleOf(reading, object.keyMeans, "keyMeans");
  into.value_means = handleOf(reading, object.valueMeans, "valueMeans");
  into.key_channel_scales = handleOf(reading, object.keyChannelScales, "keyChannelScales");
  into.planes = enumFrom(reading, object.planes, "planes");
  return into;
}

MNKKVQuantizedStorage *objectFrom(const KVQuantizedStorage &core) {
  MNKKVQuantizedStorage *object =
      [[MNKKVQuantizedStorage alloc] initWithCodec:static_cast<MNKKVCodecName>(c::write(core.codec))
                                           keyBits:core.keyBits
                                         valueBits:core.valueBits];
  object.scaleFactor = core.scaleFactor;
  object.options = objectFrom(core.options);
  object.keyMeans = tensorFrom(core.keyMeans);
  object.valueMeans = tensorFrom(core.valueMeans);
  object.keyChannelScales = tensorFrom(core.keyChannelScales);
  object.planes = static_cast<MNKKVQuantizedPlanes>(c::write(core.planes));
  return object;
}

mnk_attention_cache_descriptor structFrom(Reading &reading, MNKAttentionCacheDescriptor *object,
                                          std::string_view name) {
  mnk_attention_cache_descriptor into{};
  if (!reading.needed(object, name) || !reading.isA([MNKAttentionCacheDescriptor class], object, name)) return into;
  into.kv_heads = reading.narrow(object.kvHeads, "kvHeads");
  into.head_dim = reading.narrow(object.headDim, "headDim");
  into.value_head_dim = reading.narrow(object.valueHeadDim, "valueHeadDim");
  into.capacity = reading.narrow(object.capacity, "capacity");
  into.sequences = reading.narrow(object.sequences, "sequences");
  into.dtype = enumFrom(reading, object.elementType, "elementType");
  into.when_full = enumFrom(reading, object.whenFull, "whenFull");
  into.pinned = reading.narrow(object.pinned, "pinned");
  if (object.quantized) {
    into.has_quantized = true;
    into.quantized = structFrom(reading, object.quantized, "quantized");
  }
  if (object.slidingWindow) {
    into.has_sliding_window = true;
    into.sliding_window = structFrom(reading, object.slidingWindow, "slidingWindow");
  }
  into.latent_dim = reading.narrow(object.latentDim, "latentDim");
  into.is_storage_only = object.isStorageOnly != NO;
  return into;
}

MNKAttentionCacheDescriptor *objectFrom(const AttentionCacheDescriptor &core) {
  MNKAttentionCacheDescriptor *object = [[MNKAttentionCacheDescriptor alloc] initWithKVHeads:core.kvHeads
                                                                                     headDim:core.headDim
                                                                                    capacity:core.capacity];
  object.valueHeadDim = core.valueHeadDim;
  object.sequences = core.sequences;
  object.elementType = static_cast<MNKElementType>(c::write(core.dtype));
  object.whenFull = static_cast<MNKKVWrap>(c::write(core.whenFull));
  object.pinned = core.pinned;
  object.quantized = core.quantized ? objectFrom(*core.quantized) : nil;
  object.slidingWindow = core.slidingWindow ? objectFrom(*core.slidingWindow) : nil;
  object.latentDim = core.latentDim;
  object.storageOnly = core.isStorageOnly;
  return object;
}

}  // namespace mnk::objc
