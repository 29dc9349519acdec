#import <MLXNativeKernels/MNKAttentionOptions.h>
#import <MLXNativeKernels/MNKOperation.h>
#import <MLXNativeKernels/MNKQuantizedKVCacheView.h>

@class MNKHeadsView;

NS_ASSUME_NONNULL_BEGIN

/// A sequence of a cache, and how many positions it has, less than 2^31 and including those of the queries. A length of
/// 0 gives zeros.
@interface MNKAttendedSequence : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithSequence:(NSUInteger)sequence length:(NSUInteger)length;
- (instancetype)initWithSequence:(NSUInteger)sequence length:(NSUInteger)length highest:(NSUInteger)highest;
- (instancetype)initWithSequence:(NSUInteger)sequence
                          length:(NSUInteger)length
                         highest:(NSUInteger)highest
                            rows:(NSUInteger)rows;
- (instancetype)initWithSequence:(NSUInteger)sequence
                          length:(NSUInteger)length
                         highest:(NSUInteger)highest
                            rows:(NSUInteger)rows
                        position:(nullable NSNumber *)position NS_DESIGNATED_INITIALIZER;

/// A number, or `MNKOnlySequence` for a cache of one.
@property(nonatomic, readonly) NSUInteger sequence;
@property(nonatomic, readonly) NSUInteger length;
/// The largest length that the sequence has had since it was empty, if tokens were rolled back since; 0 means `length`.
/// A ring has lost what those tokens overwrote.
@property(nonatomic, readonly) NSUInteger highest;
/// How many rows of the queries are of the sequence; 0 means the same number for each sequence, by the queries' shape.
/// With row counts, for all sequences or for none, queries and results are one list of all rows, and there is no mask.
@property(nonatomic, readonly) NSUInteger rows;
/// The position of the first row, counted from the cache's first key: `length` + n if n tokens, which are in other
/// caches, come between the end of this one and the first row. It is below 0 if this one begins after the row. `nil`
/// means that the rows are the newest tokens; results that are partials need a position.
@property(nonatomic, readonly, nullable) NSNumber *position;

@end

/// Attends tokens of sequences, by default the newest, to all that a cache in the caller's memory holds of them.
@interface MNKFlashDecode : MNKOperation

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithQueries:(MNKTensor *)queries
                      overCache:(MNKKVCacheView *)cache
                      sequences:(NSArray<MNKAttendedSequence *> *)sequences
                        results:(MNKAttentionResults *)results;
- (instancetype)initWithQueries:(MNKTensor *)queries
             overQuantizedCache:(MNKQuantizedKVCacheView *)cache
                      sequences:(NSArray<MNKAttendedSequence *> *)sequences
                        results:(MNKAttentionResults *)results;
- (instancetype)initWithQueriesView:(MNKHeadsView *)queries
                          overCache:(MNKKVCacheView *)cache
                          sequences:(NSArray<MNKAttendedSequence *> *)sequences
                            results:(MNKAttentionResults *)results NS_DESIGNATED_INITIALIZER;
- (instancetype)initWithQueriesView:(MNKHeadsView *)queries
                 overQuantizedCache:(MNKQuantizedKVCacheView *)cache
                          sequences:(NSArray<MNKAttendedSequence *> *)sequences
                            results:(MNKAttentionResults *)results NS_DESIGNATED_INITIALIZER;

/// Any float type, a token of the view for each row.
@property(nonatomic, copy) MNKHeadsView *queriesView;
/// The tensor of `queriesView`. Setting it makes a view that is token-major: `[heads, headDim]` for one row,
/// `[rows, heads, headDim]`, or `[sequences, rows, heads, headDim]`.
@property(nonatomic) MNKTensor *queries;
/// One of these two.
@property(nonatomic, nullable, copy) MNKKVCacheView *cache;
@property(nonatomic, nullable, copy) MNKQuantizedKVCacheView *quantizedCache;
/// One for each sequence of the queries, or any that say how many of the rows they have.
@property(nonatomic, copy) NSArray<MNKAttendedSequence *> *sequences;
@property(nonatomic, copy) MNKAttentionResults *results;
@property(nonatomic, copy) MNKAttentionOptions *options;
/// `uint8`, of the plan's `scratchBytes`; `nil` means that the device provides it.
@property(nonatomic, nullable) MNKTensor *scratch;

@end

NS_ASSUME_NONNULL_END
