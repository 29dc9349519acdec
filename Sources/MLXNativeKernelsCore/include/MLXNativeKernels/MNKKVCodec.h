#import <MLXNativeKernels/Generated/MNKQuantizedViews.h>
#import <MLXNativeKernels/MNKTensor.h>

NS_ASSUME_NONNULL_BEGIN

/// The sizes of one vector.
NS_SWIFT_SENDABLE
__attribute__((objc_subclassing_restricted))
@interface MNKKVCodecSizes : NSObject

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

@property(nonatomic, readonly) NSUInteger codeBytes;
/// How many scales it has.
@property(nonatomic, readonly) NSUInteger scales;
/// Bytes of all its scales.
@property(nonatomic, readonly) NSUInteger scaleBytes;

@end

@interface MNKKVCodec (MNKCodecs)

+ (instancetype)turboWithBits:(NSUInteger)bits NS_SWIFT_NAME(turbo(bits:));
+ (instancetype)mlx1WithBits:(NSUInteger)bits NS_SWIFT_NAME(mlx1(bits:));
+ (instancetype)mlx1UnrotatedWithBits:(NSUInteger)bits NS_SWIFT_NAME(mlx1Unrotated(bits:));
+ (instancetype)mlx1Affine4;

/// What the scales are.
@property(nonatomic, readonly) MNKElementType scaleType;
/// The sizes for a vector of this many elements. Fails if the codec does not support this head dim.
- (nullable MNKKVCodecSizes *)sizesForHeadDim:(NSUInteger)headDim
                                        error:(NSError **)error NS_SWIFT_NAME(sizes(headDim:));

@end

NS_ASSUME_NONNULL_END
