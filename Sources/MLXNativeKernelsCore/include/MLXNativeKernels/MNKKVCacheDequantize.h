#import <MLXNativeKernels/Generated/MNKQuantizedViews.h>
#import <MLXNativeKernels/MNKOperation.h>

NS_ASSUME_NONNULL_BEGIN

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
