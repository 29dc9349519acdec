// Generated from Sources/API by generate.py: change the description instead.
#import <MLXNativeKernels/Generated/MNKAttentionOptions.h>
#import <MLXNativeKernels/Generated/MNKCacheViews.h>
#import <MLXNativeKernels/Generated/MNKQuantizedViews.h>
#import <MLXNativeKernels/MNKAttentionResults.h>
#import <MLXNativeKernels/MNKDescriptor.h>
#import <MLXNativeKernels/MNKOperation.h>
#import <MLXNativeKernels/MNKRotaryPositions.h>
#include "MLXNativeKernels/Generated/mnk_flash_decode.h"

@class MNKTensor;

NS_ASSUME_NONNULL_BEGIN

/// The memory that is attended to.
@protocol MNKFlashDecodeCache <NSObject, NSCopying>
@end

/// Keys and values as numbers.
@interface MNKKVCacheView (MNKFlashDecodeCache) <MNKFlashDecodeCache>
@end

/// Keys and values as codes.
@interface MNKQuantizedKVCacheView (MNKFlashDecodeCache) <MNKFlashDecodeCache>
@end

/// Attends tokens of sequences, by default the newest, to all that a cache holds of them.
///
/// Row i of a sequence with `length` positions is the token at `p = length - rows + i`, or at `p = position + i` if
/// there is a position (`MNKAttendedSequence.position`). It sees the keys at positions up to p, and newer than
/// `p - window` if there is a window:
///
///     out = sum over visible k of weight[k] * value k,      weight = softmax of the scores
///
/// `MNKAttentionOptions` says what scores are. A row that sees no key, or only keys of score -infinity, is zero; scores
/// below -3.5e29 count as -infinity. What is not visible to a row is not read for it. Without a window, a row sees what
/// a ring holds up to its own position: several rows, whose keys are all stored before the first attends, see less than
/// one at a time.
///
/// Caches may be dense or quantized; queries are rotated into the domain of codes, and results back, inside. Over a
/// latent cache, key k is value k and then the rest of the key: queries are those of absorbed attention, in the order
/// of keys.
@interface MNKFlashDecode : MNKOperation

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithQueries:(MNKHeadsView *)queries
                          cache:(id<MNKFlashDecodeCache>)cache
                      sequences:(NSArray<MNKAttendedSequence *> *)sequences
                        results:(MNKAttentionResults *)results NS_DESIGNATED_INITIALIZER;

/// Queries of any float type; the tokens of the view are rows. A tensor is `[heads, headDim]` for one row,
/// `[rows, heads, headDim]`, or `[sequences, rows, heads, headDim]`. With row counts it is one view of all rows, as of
/// one sequence, and so are results.
@property(nonatomic, copy) MNKHeadsView *queries;
/// The memory that is attended to.
@property(nonatomic, copy) id<MNKFlashDecodeCache> cache;
/// One for each sequence of the queries, or any that say how many of the rows they have.
@property(nonatomic, copy) NSArray<MNKAttendedSequence *> *sequences;
/// Where results go.
@property(nonatomic, copy) MNKAttentionResults *results;
/// How queries attend.
@property(nonatomic, copy) MNKAttentionOptions *options;
/// Memory for results between dispatches: `uint8`, of the scratch bytes of the plan. Without it, the device provides
/// it.
@property(nonatomic, nullable) MNKTensor *scratch;

@end

/// Finishes attention whose keys were attended to in parts, on one device or on several: the result is that of
/// `MNKFlashDecode` over all keys at once. With the parts j of a row and their stats (rowMax, rowSum):
///
///     top = max over j of rowMax[j],   w[j] = 2^(rowMax[j] - top)
///     out = sum over j of w[j] * sums[j]  /  (sum over j of w[j] * rowSum[j] + 2^(sink * log2(e) - top))
@interface MNKMergePartials : MNKOperation

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithParts:(MNKAttentionPartials *)parts
                      results:(MNKAttentionResults *)results NS_DESIGNATED_INITIALIZER;

/// What is merged, with an axis of parts before those that `MNKFlashDecode` writes; at most 1024 parts.
@property(nonatomic, copy) MNKAttentionPartials *parts;
/// A score for each head that takes part in the softmax and adds no value, `float32` `[heads]`; not if results are
/// partials again.
@property(nonatomic, nullable) MNKTensor *sinks;
/// Where results go, with the axes of the parts after the first.
@property(nonatomic, copy) MNKAttentionResults *results;

@end

NS_ASSUME_NONNULL_END
