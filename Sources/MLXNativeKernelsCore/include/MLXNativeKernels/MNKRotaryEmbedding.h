#import <MLXNativeKernels/MNKDescriptor.h>

NS_ASSUME_NONNULL_BEGIN

// The formatter takes a name for Swift in an enum for something else.
// clang-format off
/// Which elements make a pair, and which axis of positions rotates it. The numbers are those of ggml's rope types.
typedef NS_CLOSED_ENUM(uint32_t, MNKRotaryLayout) {
  /// Elements 2p and 2p + 1.
  MNKRotaryLayoutInterleavedPairs = 0,
  /// Elements p and p + half. All layouts that follow do the same unless `pairing` says otherwise.
  MNKRotaryLayoutHalfSplit = 2,
  /// The given number of pairs of each axis, one axis after another, and again from the first in rounds of their sum.
  MNKRotaryLayoutMRoPE NS_SWIFT_NAME(mrope) = 8,
  /// The given number of pairs of y, then of x.
  MNKRotaryLayoutVision = 24,
  /// Axes take turns: p mod 3 is the axis while p is less than three times its section.
  MNKRotaryLayoutIMRoPE NS_SWIFT_NAME(imrope) = 40,
};
// clang-format on

/// The partner of an element.
typedef NS_CLOSED_ENUM(uint32_t, MNKRotaryPairing) {
  /// Half of the rotated part away, as in MLX, ggml and transformers.
  MNKRotaryPairingHalfOfRopeDim = 0,
  /// Half of the head away, as in mlx-native. It differs where `ropeDim` is less than the head dim.
  MNKRotaryPairingHalfOfHeadDim,
  /// The next one: 2p and 2p + 1.
  MNKRotaryPairingNeighbors,
};

/// Where pairs of imrope outside of all sections go.
typedef NS_CLOSED_ENUM(uint32_t, MNKRotaryOtherAxis) {
  /// To axis 0, time, as in transformers.
  MNKRotaryOtherAxis0 = 0,
  /// To axis 3, as in ggml and mlx-native.
  MNKRotaryOtherAxis3,
};

/// Scales pairs that make fewer than `betaSlow` turns in the original context, keeps those that make more than
/// `betaFast` turns, and blends between them. Multiplies the result by `attentionFactor * (1 + 0.1 ln(1 / scale))`.
///
/// The `factor` of a model's configuration is `1 / scale`: set `scale` of the `MNKRotaryEmbedding` as well. Unless
/// `extensionFactor` is 0, the call fails if `betaFast` is not greater than `betaSlow` or `scale` is greater than 1.
@interface MNKYaRN : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithOriginalContext:(NSUInteger)originalContext NS_DESIGNATED_INITIALIZER;

/// Tokens of the context that the model was trained with.
@property(nonatomic) NSUInteger originalContext;
/// Share of the blend, from 0 to 1; 1 by default. 0 scales every pair and omits the logarithm.
@property(nonatomic) float extensionFactor;
/// A factor of the result; 1 by default.
@property(nonatomic) float attentionFactor;
/// The number of turns from which a pair is kept; 32 by default.
@property(nonatomic) float betaFast;
/// The number of turns up to which a pair is scaled; 1 by default.
@property(nonatomic) float betaSlow;
/// Whether the pairs where the blend begins and ends are rounded; `YES` by default.
@property(nonatomic) BOOL roundsCorners;

@end

/// How positions rotate the pairs of a vector. Pair p, with elements a and b, becomes
///
///     out[a] = m (x[a] cos t - x[b] sin t)      t = position[axis(p)] * frequency(p)
///     out[b] = m (x[a] sin t + x[b] cos t)      for p < ropeDim / 2; all other elements are kept
///
/// with frequency(p) = scale * base^(-2p / ropeDim) / frequencyFactors[p] and m = 1, or both as `MNKYaRN` defines.
///
/// ```objc
/// MNKRotaryEmbedding *rotary = [[MNKRotaryEmbedding alloc] init];
/// rotary.layout = MNKRotaryLayoutIMRoPE;
/// rotary.sections = @[ @24, @20, @20 ];
/// rotary.base = 5e6;
/// ```
@interface MNKRotaryEmbedding : MNKDescriptor

/// Half-split by default.
@property(nonatomic) MNKRotaryLayout layout;
/// Up to four numbers of pairs, for mrope and imrope, and the first two for vision.
@property(nonatomic, copy) NSArray<NSNumber *> *sections;
/// 10000 by default.
@property(nonatomic) double base;
/// How many elements are rotated, at most 1024; 0 means all of a head.
@property(nonatomic) NSUInteger ropeDim;
@property(nonatomic) MNKRotaryPairing pairing;
@property(nonatomic) MNKRotaryOtherAxis otherAxis;
/// Multiplies positions: 0.25 for a context four times as long. 1 by default. With `yarn`, at most 1.
@property(nonatomic) double scale;
/// A divisor for each pair's frequency; with infinity, a pair is not rotated. `nil`: none.
@property(nonatomic, nullable, copy) NSArray<NSNumber *> *frequencyFactors;
@property(nonatomic, nullable, copy) MNKYaRN *yarn;
/// Whether to undo the rotation.
@property(nonatomic, getter=isInverse) BOOL inverse;

@end

NS_ASSUME_NONNULL_END
