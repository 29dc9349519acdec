#import <MLXNativeKernels/MNKOperation.h>
#import <MLXNativeKernels/MNKQuantizedKVCacheView.h>

NS_ASSUME_NONNULL_BEGIN

/// How vectors of a quantized cache are read.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVDomain) {
  /// As they were stored: rotated back, channel scales and means undone.
  MNKKVDomainOriginal = 0,
  /// As attention reads them: scale times codebook value.
  MNKKVDomainRotated,
};

/// Dequantizes positions of a quantized cache, keys and values in one dispatch. The tensors say how many.
@interface MNKKVCacheDequantize : MNKOperation

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithCache:(MNKQuantizedKVCacheView *)cache
                         keys:(nullable MNKTensor *)keys
                       values:(nullable MNKTensor *)values
                     position:(NSUInteger)position NS_DESIGNATED_INITIALIZER;

@property(nonatomic, copy) MNKQuantizedKVCacheView *cache;
/// `MNKOnlySequence` by default: a cache of several sequences needs one of them.
@property(nonatomic) NSUInteger sequence;
/// Of the first token read.
@property(nonatomic) NSUInteger position;
/// Any float type, both alike; at least one of them. Token-major: `[tokens, heads, headDim]`, or `[heads, headDim]` for
/// one token. Head-major: `[heads, tokens, headDim]`.
@property(nonatomic, nullable) MNKTensor *keys;
@property(nonatomic, nullable) MNKTensor *values;
/// Token-major by default.
@property(nonatomic) MNKKVLayout layout;
@property(nonatomic) MNKKVDomain domain;

@end

NS_ASSUME_NONNULL_END
