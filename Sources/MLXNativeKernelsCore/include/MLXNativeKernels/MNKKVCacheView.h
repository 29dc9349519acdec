#import <MLXNativeKernels/MNKDescriptor.h>

@class MNKTensor;

NS_ASSUME_NONNULL_BEGIN

/// The order of axes in memory that holds keys or values.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVLayout) {
  /// Heads outside, tokens inside: `[heads, tokens, headDim]`.
  MNKKVLayoutHeadMajor = 0,
  /// Tokens outside, heads inside: `[tokens, heads, headDim]`.
  MNKKVLayoutTokenMajor,
};

/// Where positions beyond the last slot go.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVWrap) {
  /// An error: position p is in slot p, and there is no slot beyond the capacity.
  MNKKVWrapLinear = 0,
  /// Around: the newest positions take the slots of the oldest.
  MNKKVWrapRing,
};

/// Cache memory that the caller owns.
///
/// Shapes, where the first axis may be left out for a single sequence:
/// - head-major: `[sequences, heads, capacity, headDim]`
/// - token-major: `[sequences, capacity, heads, headDim]`
///
/// A ring always keeps its first `pinned` positions, and the newest of the others.
///
/// In a latent cache (multi-head latent attention) the first `latentDim` elements of a key are also its value. `values`
/// holds them, and `keys` the rest of each key; without values, `keys` holds whole keys.
@interface MNKKVCacheView : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithKeys:(MNKTensor *)keys values:(nullable MNKTensor *)values NS_DESIGNATED_INITIALIZER;

@property(nonatomic) MNKTensor *keys;
/// May have another head dim; `nil` for keys only.
@property(nonatomic, nullable) MNKTensor *values;
@property(nonatomic) MNKKVLayout layout;
@property(nonatomic) MNKKVWrap wrap;
/// First positions that a ring never overwrites.
@property(nonatomic) NSUInteger pinned;
/// 0 if keys and values are separate.
@property(nonatomic) NSUInteger latentDim;

@end

NS_ASSUME_NONNULL_END
