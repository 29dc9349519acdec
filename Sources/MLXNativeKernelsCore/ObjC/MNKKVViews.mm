#include "CAPI/Generated/Write.hpp"
#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@interface MNKKVCodecSizes ()
- (instancetype)initWithSizes:(mnk_kv_codec_sizes)sizes;
@end

@implementation MNKKVCodecSizes

- (instancetype)initWithSizes:(mnk_kv_codec_sizes)sizes {
  if ((self = [super init])) {
    _codeBytes = static_cast<NSUInteger>(sizes.code_bytes);
    _scales = static_cast<NSUInteger>(sizes.scales);
    _scaleBytes = static_cast<NSUInteger>(sizes.scale_bytes);
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
  KVCodec codec;
  objc::read(reading, codec.name, objc::enumFrom(reading, self.name, "name"));
  return static_cast<MNKElementType>(codec.scaleType());
}

- (MNKKVCodecSizes *)sizesForHeadDim:(NSUInteger)headDim error:(NSError **)error {
  mnk_kv_codec_sizes sizes{};
  const BOOL succeeded = objc::run(error, "KVCodec", [&](Reading &reading) {
    const auto codec = objc::structFrom(reading, self, "the codec");
    return objc::call(reading, mnk_kv_codec_get_sizes, &codec, headDim, &sizes);
  });
  return succeeded ? [[MNKKVCodecSizes alloc] initWithSizes:sizes] : nil;
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
    KVCodec kvCodec;
    KVLayout order;
    objc::read(reading, kvCodec, objc::structFrom(reading, codec, "the codec"));
    objc::read(reading, order, objc::enumFrom(reading, layout, "layout"));
    const mnk_device *target = objc::handleOf(reading, device);
    if (reading.failed()) return reading.error();
    auto plane = QuantizedKVPlane::zeros(target->device, kvCodec, heads, headDim, capacity,
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
    QuantizedCacheExtents extents{
        .headDim = headDim, .valueHeadDim = valueHeadDim, .heads = heads, .capacity = capacity, .sequences = sequences};
    objc::read(reading, extents.keys, objc::structFrom(reading, keys, "the codec of keys"));
    if (values) {
      objc::read(reading, extents.values.emplace(), objc::structFrom(reading, values, "the codec of values"));
    }
    if (reading.failed()) return reading.error();
    auto bytes = quantizedCacheBytes(extents);
    if (!bytes) return bytes.error();
    return @(*bytes);
  });
}

@end
