#import <MLXNativeKernels/Generated/MNKCacheViews.h>
#import <MLXNativeKernels/MNKTensor.h>

@class MNKAttentionCache;

NS_ASSUME_NONNULL_BEGIN

@interface MNKTensor (MNKViews)

/// All of the tensor, token-major: `[sequences, tokens, heads, headDim]`, where the sequences may be left out, or
/// `[heads, headDim]` for one token.
@property(nonatomic, readonly) MNKHeadsView *headsView;

@end

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

NS_ASSUME_NONNULL_END
