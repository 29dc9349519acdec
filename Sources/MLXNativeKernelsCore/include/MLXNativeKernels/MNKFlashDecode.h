#import <MLXNativeKernels/MNKAttentionOptions.h>
#import <MLXNativeKernels/MNKOperation.h>
#import <MLXNativeKernels/MNKQuantizedKVCacheView.h>

NS_ASSUME_NONNULL_BEGIN

/// A sequence of a cache, and how many positions it has, those of the queries included. A length of 0 gives zeros.
@interface MNKAttendedSequence : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithSequence:(NSUInteger)sequence length:(NSUInteger)length NS_DESIGNATED_INITIALIZER;

@property(nonatomic, readonly) NSUInteger sequence;
@property(nonatomic, readonly) NSUInteger length;

@end

/// Attends the newest tokens of sequences to all that a cache in the caller's memory holds of them.
@interface MNKFlashDecode : MNKOperation

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithQueries:(MNKTensor *)queries
                      overCache:(MNKKVCacheView *)cache
                      sequences:(NSArray<MNKAttendedSequence *> *)sequences
                        results:(MNKAttentionResults *)results NS_DESIGNATED_INITIALIZER;
- (instancetype)initWithQueries:(MNKTensor *)queries
             overQuantizedCache:(MNKQuantizedKVCacheView *)cache
                      sequences:(NSArray<MNKAttendedSequence *> *)sequences
                        results:(MNKAttentionResults *)results NS_DESIGNATED_INITIALIZER;

/// Any float type: `[heads, headDim]` for one row, `[rows, heads, headDim]`, or `[sequences, rows, heads, headDim]`.
@property(nonatomic) MNKTensor *queries;
/// One of these two.
@property(nonatomic, nullable, copy) MNKKVCacheView *cache;
@property(nonatomic, nullable, copy) MNKQuantizedKVCacheView *quantizedCache;
/// One for each sequence of the queries.
@property(nonatomic, copy) NSArray<MNKAttendedSequence *> *sequences;
@property(nonatomic, copy) MNKAttentionResults *results;
@property(nonatomic, copy) MNKAttentionOptions *options;
/// `uint8`, as many as the plan's `scratchBytes`; `nil` means that the device lends some.
@property(nonatomic, nullable) MNKTensor *scratch;

@end

NS_ASSUME_NONNULL_END
