#import <MLXNativeKernels/MNKDescriptor.h>
#import <MLXNativeKernels/MNKTensor.h>

NS_ASSUME_NONNULL_BEGIN

/// How the vectors of a quantized cache are encoded. The meaning of a codec's bytes never changes.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVCodecName) {
  /// Head dims 32, 64, 80, 96, 112, 128, 192, 256 and 512, 2 to 8 bits, and one `float16` scale for a vector.
  MNKKVCodecTurbo = 0,
  /// The bytes of mlx-native 0.6.6 and later: 4 bits for powers of two from 4 to 4096; 5, 6 and 8 bits, a byte for
  /// each code, for 256 and 512. Scales are `float32`.
  MNKKVCodecMLX1 NS_SWIFT_NAME(mlx1),
      /// The bytes of mlx-native's `kv_quantize_v_no_fwht`: as mlx1 with 5, 6 or 8 bits, but vectors are not rotated.
      /// An
      /// outlier therefore coarsens the rest of its vector.
      MNKKVCodecMLX1Unrotated NS_SWIFT_NAME(mlx1Unrotated),
                                            /// The bytes of mlx-native's `hadamard_quantize_kv_affine4`: 4 bits for 256
                                            /// and 512, evenly spaced values, and one
                                            /// `float32` scale for a vector.
                                            MNKKVCodecMLX1Affine4 NS_SWIFT_NAME(mlx1Affine4),
      };

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

/// A codec with its bits.
@interface MNKKVCodec : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

+ (instancetype)turboWithBits:(NSUInteger)bits NS_SWIFT_NAME(turbo(bits:));
+ (instancetype)mlx1WithBits:(NSUInteger)bits NS_SWIFT_NAME(mlx1(bits:));
+ (instancetype)mlx1UnrotatedWithBits:(NSUInteger)bits NS_SWIFT_NAME(mlx1Unrotated(bits:));
+ (instancetype)mlx1Affine4;
- (instancetype)initWithName:(MNKKVCodecName)name bits:(NSUInteger)bits NS_DESIGNATED_INITIALIZER;

@property(nonatomic) MNKKVCodecName name;
/// Bits of one code: 2 to 8 for turbo; 4, 5, 6 or 8 for mlx1; 5, 6 or 8 for mlx1Unrotated; 4 for mlx1Affine4.
@property(nonatomic) NSUInteger bits;
/// What mlx1 and mlx1Unrotated multiply elements by before they are quantized, at a head dim of 512; 1 by default.
@property(nonatomic) float scaleFactor;

/// What the scales are.
@property(nonatomic, readonly) MNKElementType scaleType;
/// The sizes for a vector of this many elements. Fails if the codec does not support this head dim.
- (nullable MNKKVCodecSizes *)sizesForHeadDim:(NSUInteger)headDim
                                        error:(NSError **)error NS_SWIFT_NAME(sizes(headDim:));

@end

/// The scale that turbo stores for a vector r whose codes represent the codebook values c.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVScaleRule) {
  /// `<r, r> / <r, c>`: keeps the vector's component along itself, so that scores do not shrink.
  MNKKVScaleRuleUnbiased = 0,
  /// `<r, c> / <c, c>`: minimizes the error of the vector.
  MNKKVScaleRuleLeastSquares,
};

/// What is stored for a vector that holds a NaN or an infinity.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVNonFinite) {
  /// A scale that is NaN, so that what is computed with the vector is NaN.
  MNKKVNonFinitePropagate = 0,
  MNKKVNonFiniteZero,
};

/// How vectors are quantized where the format allows a choice. Readers do not need it.
@interface MNKKVQuantizeOptions : MNKDescriptor

/// Sizes of a vector that turbo tries: 1, 5 or 17; 5 by default.
@property(nonatomic) NSUInteger candidates;
/// Unbiased by default.
@property(nonatomic) MNKKVScaleRule keyScale;
/// Least squares by default.
@property(nonatomic) MNKKVScaleRule valueScale;
/// Propagates NaN by default.
@property(nonatomic) MNKKVNonFinite nonFinite;

@end

NS_ASSUME_NONNULL_END
