#import <MLXNativeKernels/MNKDescriptor.h>
#import <MLXNativeKernels/MNKTensor.h>

NS_ASSUME_NONNULL_BEGIN

/// How the vectors of a quantized cache are coded. A name stands for one meaning of its bytes, for ever.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVCodecName) {
  /// Head dims 32, 64, 80, 96, 112, 128, 192, 256 and 512, 2 to 8 bits, and one `float16` scale for a vector.
  MNKKVCodecTurbo = 0,
  /// The bytes of mlx-native 0.6.6 and later: 4 bits for powers of two from 4 to 4096; 5, 6 and 8 bits, a byte for
  /// each code, for 256 and 512. Scales are `float32`.
  MNKKVCodecMLX1 NS_SWIFT_NAME(mlx1),
  };

/// What one vector takes.
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

/// A codec with its bits.
@interface MNKKVCodec : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

+ (instancetype)turboWithBits:(NSUInteger)bits NS_SWIFT_NAME(turbo(bits:));
+ (instancetype)mlx1WithBits:(NSUInteger)bits NS_SWIFT_NAME(mlx1(bits:));
- (instancetype)initWithName:(MNKKVCodecName)name bits:(NSUInteger)bits NS_DESIGNATED_INITIALIZER;

@property(nonatomic) MNKKVCodecName name;
/// Bits of one code: 2 to 8 for turbo; 4, 5, 6 or 8 for mlx1.
@property(nonatomic) NSUInteger bits;
/// What mlx1 multiplies elements by before they are coded, at a head dim of 512; 1 unless set.
@property(nonatomic) float scaleFactor;

/// What the scales are.
@property(nonatomic, readonly) MNKElementType scaleType;
/// What a vector of so many elements takes. Fails where there is no such codec for this head dim.
- (nullable MNKKVCodecSizes *)sizesForHeadDim:(NSUInteger)headDim
                                        error:(NSError **)error NS_SWIFT_NAME(sizes(headDim:));

@end

/// The scale that turbo stores for a vector r whose codes stand for the levels c.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVScaleRule) {
  /// `<r, r> / <r, c>`: the vector's part along itself is kept, so that scores do not shrink.
  MNKKVScaleRuleUnbiased = 0,
  /// `<r, c> / <c, c>`: the least error of the vector.
  MNKKVScaleRuleLeastSquares,
};

/// What is stored for a vector that holds a NaN or an infinity.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVNonFinite) {
  MNKKVNonFiniteZero = 0,
  /// A scale that is NaN, so that what is read back is NaN.
  MNKKVNonFinitePropagate,
};

/// How vectors are coded where the format leaves a choice. Readers need none of it.
@interface MNKKVQuantizeOptions : MNKDescriptor

/// Sizes of a vector that turbo tries: 1, 5 or 17; 5 unless set.
@property(nonatomic) NSUInteger candidates;
/// Unbiased unless set.
@property(nonatomic) MNKKVScaleRule keyScale;
/// Least squares unless set.
@property(nonatomic) MNKKVScaleRule valueScale;
@property(nonatomic) MNKKVNonFinite nonFinite;

@end

NS_ASSUME_NONNULL_END
