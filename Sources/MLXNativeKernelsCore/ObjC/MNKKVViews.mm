#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@implementation MNKKVCacheView

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"keys", @"values", @"layout", @"wrap", @"pinned", @"latentDim" ];
}

- (instancetype)initWithKeys:(MNKTensor *)keys values:(MNKTensor *)values {
  if ((self = [super init])) {
    _keys = keys;
    _values = values;
  }
  return self;
}

@end

@interface MNKKVCodecSizes ()
- (instancetype)initWithCore:(const KVCodecSizes &)core;
@end

@implementation MNKKVCodecSizes

- (instancetype)initWithCore:(const KVCodecSizes &)core {
  if ((self = [super init])) {
    _codeBytes = static_cast<NSUInteger>(core.codeBytes);
    _scales = static_cast<NSUInteger>(core.scales);
    _scaleBytes = static_cast<NSUInteger>(core.scaleBytes);
  }
  return self;
}

@end

@implementation MNKKVCodec

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"name", @"bits", @"scaleFactor" ];
}

+ (instancetype)turboWithBits:(NSUInteger)bits {
  return [[self alloc] initWithName:MNKKVCodecTurbo bits:bits];
}
+ (instancetype)mlx1WithBits:(NSUInteger)bits {
  return [[self alloc] initWithName:MNKKVCodecMLX1 bits:bits];
}
+ (instancetype)mlx1UnrotatedWithBits:(NSUInteger)bits {
  return [[self alloc] initWithName:MNKKVCodecMLX1Unrotated bits:bits];
}
+ (instancetype)mlx1Affine4 {
  return [[self alloc] initWithName:MNKKVCodecMLX1Affine4 bits:4];
}
- (instancetype)initWithName:(MNKKVCodecName)name bits:(NSUInteger)bits {
  if ((self = [super init])) {
    _name = name;
    _bits = bits;
    _scaleFactor = 1;
  }
  return self;
}

- (MNKElementType)scaleType {
  return static_cast<MNKElementType>(KVCodec{.name = static_cast<KVCodecName>(_name)}.scaleType());
}

- (MNKKVCodecSizes *)sizesForHeadDim:(NSUInteger)headDim error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKKVCodecSizes *> {
    Reading reading("KVCodec");
    const KVCodec codec = objc::read(reading, self);
    if (reading.failed()) return reading.error();
    auto taken = sizes(codec, headDim);
    if (!taken) return taken.error();
    return [[MNKKVCodecSizes alloc] initWithCore:*taken];
  });
}

@end

@implementation MNKKVQuantizeOptions

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"candidates", @"keyScale", @"valueScale", @"nonFinite" ];
}

- (instancetype)init {
  if ((self = [super init])) {
    _candidates = 5;
    _valueScale = MNKKVScaleRuleLeastSquares;
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

- (instancetype)initWithElements:(MNKTensor *)elements {
  return [self initWithCodec:[MNKKVCodec turboWithBits:4] codes:elements scales:nil];
}

+ (instancetype)zerosWithCodec:(MNKKVCodec *)codec
                         heads:(NSUInteger)heads
                       headDim:(NSUInteger)headDim
                      capacity:(NSUInteger)capacity
                     sequences:(NSUInteger)sequences
                        layout:(MNKKVLayout)layout
                        device:(MNKDevice *)device
                         error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKQuantizedKVPlane *> {
    Reading reading("QuantizedKVPlane");
    const KVCodec kvCodec = objc::read(reading, codec);
    const KVLayout order = objc::read(reading, layout);
    const auto target = reading.take(objc::coreOf(device));
    if (reading.failed()) return reading.error();
    auto plane = QuantizedKVPlane::zeros(target, kvCodec, heads, headDim, capacity,
                                         sequences == 0 ? std::nullopt : std::optional<uint64_t>(sequences), order);
    if (!plane) return plane.error();
    return objc::planeFrom(*plane);
  });
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
  }
  return self;
}

+ (NSNumber *)byteCountWithKeys:(MNKKVCodec *)keys
                         values:(MNKKVCodec *)values
                          heads:(NSUInteger)heads
                        headDim:(NSUInteger)headDim
                   valueHeadDim:(NSUInteger)valueHeadDim
                       capacity:(NSUInteger)capacity
                      sequences:(NSUInteger)sequences
                          error:(NSError **)error {
  return objc::make(error, [&]() -> Result<NSNumber *> {
    Reading reading("QuantizedKVCacheView");
    QuantizedCacheExtents extents{.keys = objc::read(reading, keys),
                                  .headDim = headDim,
                                  .valueHeadDim = valueHeadDim,
                                  .heads = heads,
                                  .capacity = capacity,
                                  .sequences = sequences};
    if (values) extents.values = objc::read(reading, values);
    if (reading.failed()) return reading.error();
    auto bytes = quantizedCacheBytes(extents);
    if (!bytes) return bytes.error();
    return @(*bytes);
  });
}

@end

namespace mnk::objc {

namespace {

KVWrap readWrap(Reading &reading, MNKKVWrap wrap) {
  return reading.choice(wrap, KVWrap::ring, "wrap");
}

QuantizedKVPlane readPlane(Reading &reading, MNKQuantizedKVPlane *plane) {
  return {.codec = read(reading, plane.codec),
          .codes = coreOf(plane.codes),
          .scales = coreOf(plane.scales),
          .means = optionalCoreOf(plane.means),
          .channelScales = optionalCoreOf(plane.channelScales)};
}

}  // namespace

KVLayout read(Reading &reading, MNKKVLayout layout) {
  return reading.choice(layout, KVLayout::tokenMajor, "layout");
}

KVCodecName read(Reading &reading, MNKKVCodecName name) {
  return reading.choice(name, KVCodecName::mlx1Affine4, "codec");
}

KVCodec read(Reading &reading, MNKKVCodec *codec) {
  if (!reading.needed(codec, "the codec")) return {};
  return {
      .name = read(reading, codec.name), .bits = reading.narrow(codec.bits, "bits"), .scaleFactor = codec.scaleFactor};
}

KVQuantizeOptions read(Reading &reading, MNKKVQuantizeOptions *options) {
  if (!options) return {};
  return {.candidates = reading.narrow(options.candidates, "candidates"),
          .keyScale = reading.choice(options.keyScale, KVScaleRule::leastSquares, "scale of keys"),
          .valueScale = reading.choice(options.valueScale, KVScaleRule::leastSquares, "scale of values"),
          .nonFinite = reading.choice(options.nonFinite, KVNonFinite::zero, "choice for what is not finite")};
}

KVCacheView read(Reading &reading, MNKKVCacheView *view) {
  if (!reading.needed(view, "the cache")) return {};
  return {.keys = coreOf(view.keys),
          .values = optionalCoreOf(view.values),
          .layout = read(reading, view.layout),
          .wrap = readWrap(reading, view.wrap),
          .pinned = reading.narrow(view.pinned, "pinned"),
          .latentDim = reading.narrow(view.latentDim, "latentDim")};
}

QuantizedKVCacheView read(Reading &reading, MNKQuantizedKVCacheView *view) {
  if (!reading.needed(view, "the cache") || !reading.needed(view.keys, "the keys of the cache")) return {};
  QuantizedKVCacheView result{.keys = readPlane(reading, view.keys),
                              .layout = read(reading, view.layout),
                              .wrap = readWrap(reading, view.wrap),
                              .pinned = reading.narrow(view.pinned, "pinned"),
                              .latentDim = reading.narrow(view.latentDim, "latentDim")};
  if (view.values) result.values = readPlane(reading, view.values);
  return result;
}

MNKQuantizedKVPlane *planeFrom(const QuantizedKVPlane &plane) {
  MNKKVCodec *codec = [[MNKKVCodec alloc] initWithName:static_cast<MNKKVCodecName>(plane.codec.name)
                                                  bits:plane.codec.bits];
  codec.scaleFactor = plane.codec.scaleFactor;
  MNKQuantizedKVPlane *result =
      [[MNKQuantizedKVPlane alloc] initWithCodec:codec
                                           codes:[[MNKTensor alloc] initWithCore:plane.codes]
                                          scales:plane.isDense() ? nil : tensorFrom(plane.scales)];
  result.means = tensorFrom(plane.means);
  result.channelScales = tensorFrom(plane.channelScales);
  return result;
}

MNKKVCacheView *viewFrom(const KVCacheView &view) {
  MNKKVCacheView *result = [[MNKKVCacheView alloc] initWithKeys:[[MNKTensor alloc] initWithCore:view.keys]
                                                         values:tensorFrom(view.values)];
  result.layout = static_cast<MNKKVLayout>(view.layout);
  result.wrap = static_cast<MNKKVWrap>(view.wrap);
  result.pinned = view.pinned;
  result.latentDim = view.latentDim;
  return result;
}

MNKQuantizedKVCacheView *viewFrom(const QuantizedKVCacheView &view) {
  MNKQuantizedKVCacheView *result =
      [[MNKQuantizedKVCacheView alloc] initWithKeys:planeFrom(view.keys)
                                             values:view.values ? planeFrom(*view.values) : nil];
  result.layout = static_cast<MNKKVLayout>(view.layout);
  result.wrap = static_cast<MNKKVWrap>(view.wrap);
  result.pinned = view.pinned;
  result.latentDim = view.latentDim;
  return result;
}

}  // namespace mnk::objc
