// Generated from Sources/API by generate.py: change the description instead.
#import <MLXNativeKernels/Generated/MNKCacheViews.h>
#import <MLXNativeKernels/MNKDescriptor.h>
#include "MLXNativeKernels/Generated/mnk_quantized_views.h"

@class MNKTensor;

NS_ASSUME_NONNULL_BEGIN

// clang-format off
/// Which codec.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVCodecName) {
  /// Head dims 32, 64, 80, 96, 112, 128, 192, 256 and 512, 2 to 8 bits, and one `float16` scale for a vector.
  MNKKVCodecNameTurbo = MNK_KV_CODEC_NAME_TURBO,
  /// The bytes of mlx-native 0.6.6 and later: 4 bits for powers of two from 4 to 4096; 5, 6 and 8 bits, a byte for each
  /// code, for 256 and 512. Scales are `float32`, one for a vector, or one for each half of 512 elements.
  MNKKVCodecNameMLX1 NS_SWIFT_NAME(mlx1) = MNK_KV_CODEC_NAME_MLX1,
  /// The bytes of mlx-native's `kv_quantize_v_no_fwht`, which writes values beside `float16` keys: as
  /// `MNKKVCodecNameMLX1` with 5, 6 or 8 bits, but vectors are not rotated. An outlier therefore coarsens the rest of
  /// its vector.
  MNKKVCodecNameMLX1Unrotated NS_SWIFT_NAME(mlx1Unrotated) = MNK_KV_CODEC_NAME_MLX1_UNROTATED,
  /// The bytes of mlx-native's `hadamard_quantize_kv_affine4`: 4 bits for 256 and 512, evenly spaced values instead of
  /// a codebook, no signs, and one `float32` scale for a vector.
  MNKKVCodecNameMLX1Affine4 NS_SWIFT_NAME(mlx1Affine4) = MNK_KV_CODEC_NAME_MLX1_AFFINE4,
};
// clang-format on

/// The scale that turbo stores for a vector r whose codes represent the codebook values c.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVScaleRule) {
  /// `<r, r> / <r, c>`: keeps the vector's component along itself, so that scores do not shrink.
  MNKKVScaleRuleUnbiased = MNK_KV_SCALE_RULE_UNBIASED,
  /// `<r, c> / <c, c>`: minimizes the error of the vector.
  MNKKVScaleRuleLeastSquares = MNK_KV_SCALE_RULE_LEAST_SQUARES,
};

/// What is stored for a vector that holds a NaN or an infinity.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVNonFinite) {
  /// A scale that is NaN, so that what is computed with the vector is NaN.
  MNKKVNonFinitePropagate = MNK_KV_NON_FINITE_PROPAGATE,
  /// Zero.
  MNKKVNonFiniteZero = MNK_KV_NON_FINITE_ZERO,
};

/// In which domain vectors are read back.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVDomain) {
  /// That of the vectors which were stored: rotated back, channel scales and means undone.
  MNKKVDomainOriginal = MNK_KV_DOMAIN_ORIGINAL,
  /// That of the codes: scale times codebook value, as attention reads it. `MNKHadamard` takes a query there. A plane
  /// that holds elements has one domain, the original.
  MNKKVDomainRotated = MNK_KV_DOMAIN_ROTATED,
};

/// How the vectors of a quantized cache are encoded. The meaning of a codec's bytes never changes.
///
/// `MNKKVCodecNameTurbo` and `MNKKVCodecNameMLX1` rotate a vector x of headDim elements,
///
///     r = H(s .* x) / sqrt(headDim)
///
/// where H is the Walsh-Hadamard transform in natural order and s a fixed table of signs, and quantize each element of
/// r to the index of a codebook value for numbers of variance 1. `MNKHadamard` is this rotation as an op.
@interface MNKKVCodec : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithName:(MNKKVCodecName)name bits:(NSUInteger)bits NS_DESIGNATED_INITIALIZER;

/// Which codec.
@property(nonatomic) MNKKVCodecName name;
/// Bits of one code: 2 to 8 for `MNKKVCodecNameTurbo`; 4, 5, 6 or 8 for `MNKKVCodecNameMLX1`; 5, 6 or 8 for
/// `MNKKVCodecNameMLX1Unrotated`; 4 for `MNKKVCodecNameMLX1Affine4`.
@property(nonatomic) NSUInteger bits;
/// What `MNKKVCodecNameMLX1` and `MNKKVCodecNameMLX1Unrotated` multiply elements by before they are quantized, at a
/// head dim of 512. 1 by default.
@property(nonatomic) float scaleFactor;

@end

/// How vectors are quantized where the format allows a choice. Readers do not need it.
@interface MNKKVQuantizeOptions : MNKDescriptor

/// How many sizes of a vector turbo tries, 1, 5 or 17, to keep the codes whose direction is nearest to the vector's. 5
/// by default.
@property(nonatomic) NSUInteger candidates;
/// The scale of a key. `MNKKVScaleRuleUnbiased` by default.
@property(nonatomic) MNKKVScaleRule keyScale;
/// The scale of a value. `MNKKVScaleRuleLeastSquares` by default.
@property(nonatomic) MNKKVScaleRule valueScale;
/// What is stored for a vector that holds a NaN or an infinity. `MNKKVNonFinitePropagate` by default.
@property(nonatomic) MNKKVNonFinite nonFinite;

@end

/// Codes and scales of keys, or of values, in memory that the caller owns.
///
/// Shapes, where the first axis may be left out for a single sequence, and where scales have a last axis of 2 if a
/// vector has two of them:
/// - head-major: codes `[sequences, heads, capacity, codeBytes]`, scales `[sequences, heads, capacity]`
/// - token-major: codes `[sequences, capacity, heads, codeBytes]`, scales `[sequences, capacity, heads]`
///
/// What is quantized is `(x - means) .* channelScales`. For keys this is free: a mean that all keys of a head share
/// adds the same number to all scores of a query, and dividing queries by the channel scales leaves scores unchanged. A
/// mean of values is added to the result of attention.
///
/// One of keys and values may be dense: elements of `float32`, `float16` or `bfloat16`, with `headDim` instead of
/// `codeBytes`, and without scales.
///
/// `initWithElements:` makes such a plane.
@interface MNKQuantizedKVPlane : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithCodec:(MNKKVCodec *)codec
                        codes:(MNKTensor *)codes
                       scales:(nullable MNKTensor *)scales NS_DESIGNATED_INITIALIZER;

/// The codec; ignored for dense vectors.
@property(nonatomic, copy) MNKKVCodec *codec;
/// Codes, `uint8`, or the elements of dense vectors.
@property(nonatomic) MNKTensor *codes;
/// Scales, `float16` for turbo, otherwise `float32`; `nil` for dense vectors.
@property(nonatomic, nullable) MNKTensor *scales;
/// Subtracted from vectors before they are quantized: `float32`, `[heads, headDim]`. Turbo only.
@property(nonatomic, nullable) MNKTensor *means;
/// Multiplies the difference: `float32`, `[heads, headDim]`, none of them 0. Keys of turbo only.
@property(nonatomic, nullable) MNKTensor *channelScales;

@end

/// Memory of a quantized cache that the caller owns. Slots are those of a `MNKKVCacheView`.
@interface MNKQuantizedKVCacheView : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithKeys:(MNKQuantizedKVPlane *)keys
                      values:(nullable MNKQuantizedKVPlane *)values NS_DESIGNATED_INITIALIZER;

/// Memory of the keys.
@property(nonatomic, copy) MNKQuantizedKVPlane *keys;
/// Memory of the values, which may have other bits and another head dim; `nil` for keys only.
@property(nonatomic, nullable, copy) MNKQuantizedKVPlane *values;
/// The order of axes. `MNKKVLayoutHeadMajor` by default.
@property(nonatomic) MNKKVLayout layout;
/// Where positions beyond the last slot go. `MNKKVWrapLinear` by default.
@property(nonatomic) MNKKVWrap wrap;
/// First positions that a ring never overwrites.
@property(nonatomic) NSUInteger pinned;
/// The length of values that are the first part of keys, in a latent cache; 0 if keys and values are separate.
@property(nonatomic) NSUInteger latentDim;

@end

NS_ASSUME_NONNULL_END
