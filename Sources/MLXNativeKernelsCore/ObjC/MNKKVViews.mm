#include "CAPI/Generated/Write.hpp"
#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

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

@implementation MNKKVCodec (MNKCodecs)

+ (instancetype)turboWithBits:(NSUInteger)bits {
  return [[self alloc] initWithName:MNKKVCodecNameTurbo bits:bits];
}
+ (instancetype)mlx1WithBits:(NSUInteger)bits {
  return [[self alloc] initWithName:MNKKVCodecNameMLX1 bits:bits];
}
+ (instancetype)mlx1UnrotatedWithBits:(NSUInteger)bits {
  return [[self alloc] initWithName:MNKKVCodecNameMLX1Unrotated bits:bits];
}
+ (instancetype)mlx1Affine4 {
  return [[self alloc] initWithName:MNKKVCodecNameMLX1Affine4 bits:4];
}
- (MNKElementType)scaleType {
  Reading reading("KVCodec");
  return static_cast<MNKElementType>(KVCodec{.name = objc::read(reading, self.name, "name")}.scaleType());
}

- (MNKKVCodecSizes *)sizesForHeadDim:(NSUInteger)headDim error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKKVCodecSizes *> {
    Reading reading("KVCodec");
    const KVCodec codec = objc::read(reading, self, "the codec");
    if (reading.failed()) return reading.error();
    auto taken = sizes(codec, headDim);
    if (!taken) return taken.error();
    return [[MNKKVCodecSizes alloc] initWithCore:*taken];
  });
}

@end

@implementation MNKQuantizedKVPlane (MNKMemory)

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
    const KVCodec kvCodec = objc::read(reading, codec, "the codec");
    const KVLayout order = objc::read(reading, layout, "layout");
    const auto target = reading.take(objc::coreOf(device));
    if (reading.failed()) return reading.error();
    auto plane = QuantizedKVPlane::zeros(target, kvCodec, heads, headDim, capacity,
                                         sequences == 0 ? std::nullopt : std::optional<uint64_t>(sequences), order);
    if (!plane) return plane.error();
    return objc::objectFrom(*plane);
  });
}

@end

@implementation MNKQuantizedKVCacheView (MNKMemory)

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
    QuantizedCacheExtents extents{.keys = objc::read(reading, keys, "the codec of keys"),
                                  .headDim = headDim,
                                  .valueHeadDim = valueHeadDim,
                                  .heads = heads,
                                  .capacity = capacity,
                                  .sequences = sequences};
    if (values) extents.values = objc::read(reading, values, "the codec of values");
    if (reading.failed()) return reading.error();
    auto bytes = quantizedCacheBytes(extents);
    if (!bytes) return bytes.error();
    return @(*bytes);
  });
}

@end
