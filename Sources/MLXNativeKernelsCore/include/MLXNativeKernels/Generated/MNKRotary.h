// Generated from Sources/API by generate.py: change the description instead.
#import <MLXNativeKernels/MNKDescriptor.h>
#include "MLXNativeKernels/Generated/mnk_rotary.h"

NS_ASSUME_NONNULL_BEGIN

// clang-format off
/// Which elements make a pair, and which axis of positions rotates it. The numbers are those of ggml's rope types,
/// which mlx-native calls modes.
typedef NS_CLOSED_ENUM(uint32_t, MNKRotaryEmbeddingLayout) {
  /// Elements 2p and 2p + 1.
  MNKRotaryEmbeddingLayoutInterleavedPairs = MNK_ROTARY_EMBEDDING_LAYOUT_INTERLEAVED_PAIRS,
  /// Elements p and p + half. All layouts that follow do the same unless the pairing says otherwise.
  MNKRotaryEmbeddingLayoutHalfSplit = MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT,
  /// The given number of pairs of each axis, one axis after another, and again from the first in rounds of their sum.
  /// Pairs beyond the rotated part are not used, as in ggml: check that the sum is half the rotated part.
  MNKRotaryEmbeddingLayoutMRoPE NS_SWIFT_NAME(mrope) = MNK_ROTARY_EMBEDDING_LAYOUT_MROPE,
  /// The given number of pairs of y (axis 0), then of x (axis 1). Each axis counts its pairs q from 0 and rotates them
  /// by `base^(-2q / (headDim / 2))`.
  MNKRotaryEmbeddingLayoutVision = MNK_ROTARY_EMBEDDING_LAYOUT_VISION,
  /// Axes take turns: p mod 3 is the axis while p is less than three times its section; other pairs go to
  /// `MNKRotaryEmbedding.otherAxis`. The fourth number only lengthens a round.
  MNKRotaryEmbeddingLayoutIMRoPE NS_SWIFT_NAME(imrope) = MNK_ROTARY_EMBEDDING_LAYOUT_IMROPE,
};
// clang-format on

/// The partner of an element, except with interleaved pairs, which have one of their own.
typedef NS_CLOSED_ENUM(uint32_t, MNKRotaryEmbeddingPairing) {
  /// Half of the rotated part away, as in MLX, ggml and transformers.
  MNKRotaryEmbeddingPairingHalfOfRopeDim = MNK_ROTARY_EMBEDDING_PAIRING_HALF_OF_ROPE_DIM,
  /// Half of the head away, as in mlx-native. It differs where the rotated part is less than the head.
  MNKRotaryEmbeddingPairingHalfOfHeadDim = MNK_ROTARY_EMBEDDING_PAIRING_HALF_OF_HEAD_DIM,
  /// The next one: 2p and 2p + 1. With sections this is what GLM-4V has.
  MNKRotaryEmbeddingPairingNeighbors = MNK_ROTARY_EMBEDDING_PAIRING_NEIGHBORS,
};

/// Where pairs of imrope outside of all sections go.
typedef NS_CLOSED_ENUM(uint32_t, MNKRotaryEmbeddingOtherAxis) {
  /// To axis 0, time, as in transformers, with whose code these models were published.
  MNKRotaryEmbeddingOtherAxisAxis0 = MNK_ROTARY_EMBEDDING_OTHER_AXIS_AXIS0,
  /// To axis 3, as in ggml and mlx-native. ggml's callers fill it with 0 for text: such pairs are then not rotated.
  MNKRotaryEmbeddingOtherAxisAxis3 = MNK_ROTARY_EMBEDDING_OTHER_AXIS_AXIS3,
};

/// Scales pairs that make fewer than `betaSlow` turns in the original context, keeps those that make more than
/// `betaFast` turns, and blends between them. Multiplies the result by `attentionFactor * (1 + 0.1 ln(1 / scale))`.
///
/// The `factor` of a model's configuration is `1 / scale`: pass `MNKRotaryEmbedding.scale` as well. What transformers
/// calls `attention_factor` is all of the product above. The call fails if `betaFast` is not greater than `betaSlow`,
/// or if the scale is greater than 1. With an `extensionFactor` of 0, neither is required; what remains is
/// `attentionFactor`, which is what LongRoPE has beside its `MNKRotaryEmbedding.frequencyFactors`.
@interface MNKRotaryEmbeddingYaRN : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithOriginalContext:(NSUInteger)originalContext NS_DESIGNATED_INITIALIZER;

/// Tokens of the context that the model was trained with.
@property(nonatomic) NSUInteger originalContext;
/// Share of the blend, from 0 to 1; 0 scales every pair and omits the logarithm. 1 by default.
@property(nonatomic) float extensionFactor;
/// A factor of the result. 1 by default.
@property(nonatomic) float attentionFactor;
/// The number of turns from which a pair is kept. 32 by default.
@property(nonatomic) float betaFast;
/// The number of turns up to which a pair is scaled. 1 by default.
@property(nonatomic) float betaSlow;
/// Whether the pairs where the blend begins and ends are rounded; `NO` is `"truncate": false` of a configuration. `YES`
/// by default.
@property(nonatomic) BOOL roundsCorners;

@end

/// How positions rotate the pairs of a vector.
///
/// Pair p, with elements a and b, becomes
///
///     out[a] = m (x[a] cos t - x[b] sin t)      t = position[axis(p)] * frequency(p)
///     out[b] = m (x[a] sin t + x[b] cos t)      for p < ropeDim / 2; all others are kept
///
/// with frequency(p) = scale * base^(-2p / ropeDim) / frequencyFactors[p] and m = 1, or both as YaRN defines.
///
/// ```objc
/// MNKRotaryEmbedding *rotary = [[MNKRotaryEmbedding alloc] init];
/// rotary.layout = MNKRotaryEmbeddingLayoutIMRoPE;
/// rotary.sections = @[ @24, @20, @20 ];
/// rotary.base = 5e6;
/// ```
@interface MNKRotaryEmbedding : MNKDescriptor

/// Which elements make a pair, and which axis rotates it. `MNKRotaryEmbeddingLayoutHalfSplit` by default.
@property(nonatomic) MNKRotaryEmbeddingLayout layout;
/// Up to four numbers of pairs, for mrope and imrope, and the first two for vision.
@property(nonatomic, copy) NSArray<NSNumber *> *sections;
/// The base of the frequencies. 10000 by default.
@property(nonatomic) double base;
/// How many elements are rotated, at most 1024; 0 means all of a head.
@property(nonatomic) NSUInteger ropeDim;
/// The partner of an element. `MNKRotaryEmbeddingPairingHalfOfRopeDim` by default.
@property(nonatomic) MNKRotaryEmbeddingPairing pairing;
/// Which axis rotates pairs of imrope outside of all sections. `MNKRotaryEmbeddingOtherAxisAxis0` by default.
@property(nonatomic) MNKRotaryEmbeddingOtherAxis otherAxis;
/// Multiplies positions: 0.25 for a context four times as long. With YaRN, at most 1. 1 by default.
@property(nonatomic) double scale;
/// A divisor for each pair's frequency; with infinity, a pair is not rotated. Without any, nothing is divided.
///
/// Llama 3's scaling comes as such factors. A model's own table of periods, as MLX takes it, is this with a base of 1.
@property(nonatomic, nullable, copy) NSArray<NSNumber *> *frequencyFactors;
/// Scales some pairs more than others.
@property(nonatomic, nullable, copy) MNKRotaryEmbeddingYaRN *yarn;
/// Whether to undo the rotation.
@property(nonatomic, getter=isInverse) BOOL inverse;

@end

NS_ASSUME_NONNULL_END
