#import <MLXNativeKernels/Generated/MNKCacheViews.h>
#import <MLXNativeKernels/Generated/MNKRotary.h>
#import <MLXNativeKernels/MNKIntegers.h>
#import <MLXNativeKernels/MNKOperation.h>

@class MNKAttentionCache;

NS_ASSUME_NONNULL_BEGIN

@interface MNKHeadsView (MNKViews)

+ (instancetype)viewWithTensor:(MNKTensor *)tensor layout:(MNKKVLayout)layout;

/// Heads side by side in the columns of a `[tokens, width]` or `[sequences, tokens, width]` tensor, as a fused
/// projection leaves them. Fails if the tensor has another rank.
+ (nullable instancetype)viewWithColumnsOfTensor:(MNKTensor *)tensor
                                     firstColumn:(NSUInteger)firstColumn
                                           heads:(NSUInteger)heads
                                         headDim:(NSUInteger)headDim
                                           error:(NSError **)error;

@end

/// The position of each token, from -2^31 to 2^31 - 1, on one to four axes. One axis is used for all of them, as for
/// text. At most 1024 numbers can be known in advance; use a tensor for more.
@interface MNKRotaryPositions : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

/// Counts up from here in every sequence.
+ (instancetype)positionsStartingAt:(NSInteger)first;
/// One position for each token on each axis, such as time, height and width. Axes have the same number of positions.
+ (instancetype)positionsPerAxis:(NSArray<NSArray<NSNumber *> *> *)axes;
/// An `int32` or `uint32` tensor that the kernel reads: `[tokens]`, `[axes, tokens]` or `[axes, sequences, tokens]`.
+ (instancetype)positionsWithTensor:(MNKTensor *)tensor;

/// The positions that the next tokens of a cache get, after what the encoder has appended. The tokens are of the only
/// sequence of the cache. The encoder must then append them, or it cannot be committed. It knows tokens by
/// their memory, and refuses to append and attend with rows that were not rotated for these tokens, unless a dispatch
/// of it has written them since.
+ (instancetype)nextPositionsOfCache:(MNKAttentionCache *)cache NS_SWIFT_NAME(next(of:));
/// The same for tokens of several sequences: lists mean what they mean in an append.
+ (instancetype)nextPositionsOfCache:(MNKAttentionCache *)cache
                           sequences:(NSArray<NSNumber *> *)sequences
                           rowCounts:(nullable NSArray<NSNumber *> *)rowCounts
    NS_SWIFT_NAME(next(of:sequences:rowCounts:));

@property(nonatomic, readonly) NSInteger first;
@property(nonatomic, readonly, nullable, copy) NSArray<NSArray<NSNumber *> *> *axes;
/// Set for the next positions of a cache, with their lists.
@property(nonatomic, readonly, nullable) MNKAttentionCache *cache;
@property(nonatomic, readonly, nullable, copy) NSArray<NSNumber *> *sequences;
@property(nonatomic, readonly, nullable, copy) NSArray<NSNumber *> *rowCounts;
@property(nonatomic, readonly, nullable) MNKTensor *tensor;

@end

/// How queries and keys of a step over a cache are rotated, as `MNKMultiRoPE` defines it.
@interface MNKRotaryStep : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithEmbedding:(MNKRotaryEmbedding *)embedding NS_DESIGNATED_INITIALIZER;

@property(nonatomic, copy) MNKRotaryEmbedding *embedding;
/// Of the step's tokens; `nil` means the positions that they get in the cache.
@property(nonatomic, nullable, copy) MNKRotaryPositions *positions;
/// One number for each sequence, added to all its positions; a tensor is `int32` or `uint32`.
@property(nonatomic, nullable, copy) MNKIntegers *offsets;

@end

/// Rotates queries, and keys, by their positions, by default in place, in any float type, computing in `float32`.
/// Angles are computed in integers: position one million is as exact as position one.
@interface MNKMultiRoPE : MNKOperation

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithQueries:(MNKHeadsView *)queries
                           keys:(nullable MNKHeadsView *)keys
                      positions:(MNKRotaryPositions *)positions
                         rotary:(MNKRotaryEmbedding *)rotary NS_DESIGNATED_INITIALIZER;

@property(nonatomic, copy) MNKHeadsView *queries;
/// Other heads of the same tokens.
@property(nonatomic, nullable, copy) MNKHeadsView *keys;
/// Where rotated queries go, with their own element type and strides; `nil` means in place.
@property(nonatomic, nullable, copy) MNKHeadsView *rotatedQueries;
@property(nonatomic, nullable, copy) MNKHeadsView *rotatedKeys;
@property(nonatomic, copy) MNKRotaryPositions *positions;
/// One number for each sequence, added to all its positions; a tensor is `int32` or `uint32`.
@property(nonatomic, nullable, copy) MNKIntegers *offsets;
@property(nonatomic, copy) MNKRotaryEmbedding *rotary;

@end

NS_ASSUME_NONNULL_END
