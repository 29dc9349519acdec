#import <MLXNativeKernels/Generated/MNKAttentionOptions.h>
#import <MLXNativeKernels/Generated/MNKQuantizedViews.h>
#import <MLXNativeKernels/MNKOperation.h>

NS_ASSUME_NONNULL_BEGIN

@interface MNKAttentionResults (MNKOutputs)

+ (instancetype)resultsIntoTensor:(MNKTensor *)output;
+ (instancetype)resultsIntoPartials:(MNKAttentionPartials *)partials;

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
