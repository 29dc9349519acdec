// Generated from Sources/API by generate.py: change the description instead.
#import <MLXNativeKernels/Generated/MNKCacheViews.h>
#import <MLXNativeKernels/Generated/MNKRotary.h>
#import <MLXNativeKernels/MNKDescriptor.h>
#import <MLXNativeKernels/MNKIntegers.h>
#import <MLXNativeKernels/MNKOperation.h>
#import <MLXNativeKernels/MNKRotaryPositions.h>
#include "MLXNativeKernels/Generated/mnk_multi_rope.h"

NS_ASSUME_NONNULL_BEGIN

/// How queries and keys of a step over a cache are rotated, as `MNKMultiRoPE` defines it.
///
/// Pass queries and keys that are not rotated. The call fails if the same step has rotated them by positions of a
/// cache; it cannot see rotations by numbers, or in earlier steps.
@interface MNKRotaryStep : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithEmbedding:(MNKRotaryEmbedding *)embedding NS_DESIGNATED_INITIALIZER;

/// How positions rotate pairs.
@property(nonatomic, copy) MNKRotaryEmbedding *embedding;
/// The position of each of the step's tokens; `nil` means the positions that they get in the cache.
@property(nonatomic, nullable, copy) MNKRotaryPositions *positions;
/// One number for each sequence, added to all its positions, such as a model's rope delta; a tensor is `int32` or
/// `uint32`.
@property(nonatomic, nullable, copy) MNKIntegers *offsets;

@end

/// Rotates queries and keys by their positions, in one dispatch if they have the same element types and are both in
/// place or both out of place.
///
///     into[sequence, token, head] = rotated(from[sequence, token, head])
///
/// as `MNKRotaryEmbedding` defines it, by default in place, in any float type, computing in `float32`. Angles are
/// computed in integers, as fractions of a turn: position one million is as exact as position one.
@interface MNKMultiRoPE : MNKOperation

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithQueries:(MNKHeadsView *)queries
                           keys:(nullable MNKHeadsView *)keys
                      positions:(MNKRotaryPositions *)positions
                         rotary:(MNKRotaryEmbedding *)rotary NS_DESIGNATED_INITIALIZER;

/// The queries.
@property(nonatomic, copy) MNKHeadsView *queries;
/// The keys: other heads of the same tokens.
@property(nonatomic, nullable, copy) MNKHeadsView *keys;
/// Where rotated queries go, with their own element type and strides; `nil` means in place.
@property(nonatomic, nullable, copy) MNKHeadsView *rotatedQueries;
/// Where rotated keys go; `nil` means in place.
@property(nonatomic, nullable, copy) MNKHeadsView *rotatedKeys;
/// The position of each token.
@property(nonatomic, copy) MNKRotaryPositions *positions;
/// One number for each sequence, added to all its positions, such as a model's rope delta; a tensor is `int32` or
/// `uint32`.
@property(nonatomic, nullable, copy) MNKIntegers *offsets;
/// How positions rotate pairs.
@property(nonatomic, copy) MNKRotaryEmbedding *rotary;

@end

NS_ASSUME_NONNULL_END
