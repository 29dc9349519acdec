// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Generated/Write.hpp"
#import "ObjC/Generated/Read.hpp"

using namespace mnk;

@implementation MNKKVCodec

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"name", @"bits", @"scaleFactor" ];
}

- (instancetype)initWithName:(MNKKVCodecName)name bits:(NSUInteger)bits {
  if ((self = [super init])) {
    _name = name;
    _bits = bits;
    _scaleFactor = 1;
  }
  return self;
}

@end

@implementation MNKKVQuantizeOptions

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"candidates", @"keyScale", @"valueScale", @"nonFinite" ];
}

- (instancetype)init {
  if ((self = [super init])) {
    _candidates = 5;
    _keyScale = MNKKVScaleRuleUnbiased;
    _valueScale = MNKKVScaleRuleLeastSquares;
    _nonFinite = MNKKVNonFinitePropagate;
  }
  return self;
}

@end

@implementation MNKQuantizedKVPlane

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"codec", @"codes", @"scales", @"means", @"channelScales" ];
}

- (instancetype)initWithCodec:(MNKKVCodec *)codec codes:(MNKTensor *)codes scales:(MNKTensor *)scales {
  if ((self = [super init])) {
    _codec = [codec copy];
    _codes = codes;
    _scales = scales;
  }
  return self;
}

@end

@implementation MNKQuantizedKVCacheView

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"keys", @"values", @"layout", @"wrap", @"pinned", @"latentDim" ];
}

- (instancetype)initWithKeys:(MNKQuantizedKVPlane *)keys values:(MNKQuantizedKVPlane *)values {
  if ((self = [super init])) {
    _keys = [keys copy];
    _values = [values copy];
    _layout = MNKKVLayoutHeadMajor;
    _wrap = MNKKVWrapLinear;
  }
  return self;
}

@end

namespace mnk::objc {

mnk_kv_codec_name enumFrom(Reading &reading, MNKKVCodecName value, std::string_view name) {
  return reading.choice<mnk_kv_codec_name>(value,
                                           {MNK_KV_CODEC_NAME_TURBO, MNK_KV_CODEC_NAME_MLX1,
                                            MNK_KV_CODEC_NAME_MLX1_UNROTATED, MNK_KV_CODEC_NAME_MLX1_AFFINE4},
                                           name, "MNKKVCodecName");
}

mnk_kv_scale_rule enumFrom(Reading &reading, MNKKVScaleRule value, std::string_view name) {
  return reading.choice<mnk_kv_scale_rule>(value, {MNK_KV_SCALE_RULE_UNBIASED, MNK_KV_SCALE_RULE_LEAST_SQUARES}, name,
                                           "MNKKVScaleRule");
}

mnk_kv_non_finite enumFrom(Reading &reading, MNKKVNonFinite value, std::string_view name) {
  return reading.choice<mnk_kv_non_finite>(value, {MNK_KV_NON_FINITE_PROPAGATE, MNK_KV_NON_FINITE_ZERO}, name,
                                           "MNKKVNonFinite");
}

mnk_kv_domain enumFrom(Reading &reading, MNKKVDomain value, std::string_view name) {
  return reading.choice<mnk_kv_domain>(value, {MNK_KV_DOMAIN_ORIGINAL, MNK_KV_DOMAIN_ROTATED}, name, "MNKKVDomain");
}

mnk_kv_codec structFrom(Reading &reading, MNKKVCodec *object, std::string_view name) {
  mnk_kv_codec into{};
  if (!reading.needed(object, name) || !reading.isA([MNKKVCodec class], object, name)) return into;
  into.name = enumFrom(reading, object.name, "name");
  into.bits = reading.narrow(object.bits, "bits");
  into.scale_factor = reading.nonzero(object.scaleFactor, "scaleFactor");
  return into;
}

MNKKVCodec *objectFrom(const KVCodec &core) {
  MNKKVCodec *object = [[MNKKVCodec alloc] initWithName:static_cast<MNKKVCodecName>(c::write(core.name))
                                                   bits:core.bits];
  object.scaleFactor = core.scaleFactor;
  return object;
}

mnk_kv_quantize_options structFrom(Reading &reading, MNKKVQuantizeOptions *object, std::string_view name) {
  mnk_kv_quantize_options into{};
  if (!object || !reading.isA([MNKKVQuantizeOptions class], object, name)) return into;
  into.candidates = reading.nonzero(reading.narrow(object.candidates, "candidates"), "candidates");
  into.key_scale = enumFrom(reading, object.keyScale, "keyScale");
  into.value_scale = enumFrom(reading, object.valueScale, "valueScale");
  into.non_finite = enumFrom(reading, object.nonFinite, "nonFinite");
  return into;
}

MNKKVQuantizeOptions *objectFrom(const KVQuantizeOptions &core) {
  MNKKVQuantizeOptions *object = [[MNKKVQuantizeOptions alloc] init];
  object.candidates = core.candidates;
  object.keyScale = static_cast<MNKKVScaleRule>(c::write(core.keyScale));
  object.valueScale = static_cast<MNKKVScaleRule>(c::write(core.valueScale));
  object.nonFinite = static_cast<MNKKVNonFinite>(c::write(core.nonFinite));
  return object;
}

mnk_quantized_kv_plane structFrom(Reading &reading, MNKQuantizedKVPlane *object, std::string_view name) {
  mnk_quantized_kv_plane into{};
  if (!reading.needed(object, name) || !reading.isA([MNKQuantizedKVPlane class], object, name)) return into;
  into.codec = structFrom(reading, object.codec, "codec");
  reading.needed(object.codes, "codes");
  into.codes = handleOf(reading, object.codes, "codes");
  into.scales = handleOf(reading, object.scales, "scales");
  into.means = handleOf(reading, object.means, "means");
  into.channel_scales = handleOf(reading, object.channelScales, "channelScales");
  return into;
}

MNKQuantizedKVPlane *objectFrom(const QuantizedKVPlane &core) {
  MNKQuantizedKVPlane *object = [[MNKQuantizedKVPlane alloc] initWithCodec:objectFrom(core.codec)
                                                                     codes:(MNKTensor *_Nonnull)tensorFrom(core.codes)
                                                                    scales:tensorFrom(core.scales)];
  object.means = tensorFrom(core.means);
  object.channelScales = tensorFrom(core.channelScales);
  return object;
}

mnk_quantized_kv_cache_view structFrom(Reading &reading, MNKQuantizedKVCacheView *object, std::string_view name) {
  mnk_quantized_kv_cache_view into{};
  if (!reading.needed(object, name) || !reading.isA([MNKQuantizedKVCacheView class], object, name)) return into;
  into.keys = structFrom(reading, object.keys, "keys");
  if (object.values) {
    into.values = structFrom(reading, object.values, "values");
  }
  into.layout = enumFrom(reading, object.layout, "layout");
  into.wrap = enumFrom(reading, object.wrap, "wrap");
  into.pinned = reading.narrow(object.pinned, "pinned");
  into.latent_dim = reading.narrow(object.latentDim, "latentDim");
  return into;
}

MNKQuantizedKVCacheView *objectFrom(const QuantizedKVCacheView &core) {
  MNKQuantizedKVCacheView *object =
      [[MNKQuantizedKVCacheView alloc] initWithKeys:objectFrom(core.keys)
                                             values:core.values ? objectFrom(*core.values) : nil];
  object.layout = static_cast<MNKKVLayout>(c::write(core.layout));
  object.wrap = static_cast<MNKKVWrap>(c::write(core.wrap));
  object.pinned = core.pinned;
  object.latentDim = core.latentDim;
  return object;
}

}  // namespace mnk::objc
