// Generated from Sources/API by generate.py: change the description instead.
#import <MLXNativeKernels/MNKDescriptor.h>
#include "MLXNativeKernels/Generated/mnk_cache_views.h"

@class MNKTensor;

NS_ASSUME_NONNULL_BEGIN

/// The order of axes in memory that holds keys or values.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVLayout) {
  /// Heads outside, tokens inside: `[heads, tokens, headDim]`.
  MNKKVLayoutHeadMajor = MNK_KV_LAYOUT_HEAD_MAJOR,
  /// Tokens outside, heads inside: `[tokens, heads, headDim]`.
  MNKKVLayoutTokenMajor = MNK_KV_LAYOUT_TOKEN_MAJOR,
};

/// Where positions beyond the last slot go.
typedef NS_CLOSED_ENUM(uint32_t, MNKKVWrap) {
  /// An error: position p is in slot p, and there is no slot beyond the capacity.
  MNKKVWrapLinear = MNK_KV_WRAP_LINEAR,
  /// Around: the newest positions take the slots of the oldest.
  MNKKVWrapRing = MNK_KV_WRAP_RING,
};

/// Counts of vectors, and the distances between them in elements. A stride of 0 reads the same vectors again.
@interface MNKHeadsViewStrides : MNKDescriptor

/// How many sequences there are. 1 by default.
@property(nonatomic) NSUInteger sequences;
/// Tokens of one sequence. 1 by default.
@property(nonatomic) NSUInteger tokens;
/// Heads of one token. 1 by default.
@property(nonatomic) NSUInteger heads;
/// Elements of one head.
@property(nonatomic) NSUInteger headDim;
/// The offset of the first element in the tensor.
@property(nonatomic) NSUInteger offset;
/// From one sequence to the next.
@property(nonatomic) NSUInteger sequenceStride;
/// From one token to the next.
@property(nonatomic) NSUInteger tokenStride;
/// From one head to the next.
@property(nonatomic) NSUInteger headStride;

@end

/// Vectors of `headDim` elements, one for every sequence, token and head, in a tensor's memory.
///
/// By the tensor's shape, where the sequences may be left out:
/// - token-major: `[sequences, tokens, heads, headDim]`, or `[heads, headDim]` for one token
/// - head-major: `[sequences, heads, tokens, headDim]`
///
/// or with any strides, such as in some columns of a fused projection. The elements of a vector are contiguous.
@interface MNKHeadsView : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithTensor:(MNKTensor *)tensor NS_DESIGNATED_INITIALIZER;

/// The memory.
@property(nonatomic) MNKTensor *tensor;
/// The order of its axes. `MNKKVLayoutTokenMajor` by default.
@property(nonatomic) MNKKVLayout layout;
/// If there are any, they replace the tensor's shape and the layout.
@property(nonatomic, nullable, copy) MNKHeadsViewStrides *strides;

@end

/// Cache memory that the caller owns.
///
/// Shapes, where the first axis may be left out for a single sequence:
/// - head-major: `[sequences, heads, capacity, headDim]`
/// - token-major: `[sequences, capacity, heads, headDim]`
///
/// A linear cache keeps position p in slot p. A ring always keeps its first `pinned` positions, and the newest of the
/// others: `slot(p) = p < pinned ? p : pinned + (p - pinned) mod (capacity - pinned)`.
///
/// In a latent cache (multi-head latent attention) the first `latentDim` elements of a key are also its value, and are
/// stored once. `values` holds them, and `keys` the rest of each key; without values, `keys` holds whole keys.
@interface MNKKVCacheView : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithKeys:(MNKTensor *)keys values:(nullable MNKTensor *)values NS_DESIGNATED_INITIALIZER;

/// Memory of the keys.
@property(nonatomic) MNKTensor *keys;
/// Memory of the values, which may have another head dim; `nil` for keys only.
@property(nonatomic, nullable) MNKTensor *values;
/// The order of axes. `MNKKVLayoutHeadMajor` by default.
@property(nonatomic) MNKKVLayout layout;
/// Where positions beyond the last slot go. `MNKKVWrapLinear` by default.
@property(nonatomic) MNKKVWrap wrap;
/// First positions that a ring never overwrites.
@property(nonatomic) NSUInteger pinned;
/// How many first elements of a key are also its value; 0 if keys and values are separate.
@property(nonatomic) NSUInteger latentDim;

@end

NS_ASSUME_NONNULL_END
