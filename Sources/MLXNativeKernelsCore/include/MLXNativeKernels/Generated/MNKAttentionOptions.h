// Generated from Sources/API by generate.py: change the description instead.
#import <MLXNativeKernels/Generated/MNKCacheViews.h>
#import <MLXNativeKernels/MNKDescriptor.h>
#include "MLXNativeKernels/Generated/mnk_attention_options.h"

@class MNKTensor;

NS_ASSUME_NONNULL_BEGIN

/// Which kernel computes.
typedef NS_CLOSED_ENUM(uint32_t, MNKAttentionOptionsKernel) {
  /// The fastest on this device, but never the matrix kernel for `float32` queries, which are more precise. On a GPU,
  /// it may be the prefill kernel, which attends with any number of rows in one dispatch. That kernel does not merge
  /// splits itself, so it is not used with `MNKAttentionOptionsMergeInKernel`.
  MNKAttentionOptionsKernelAutomatic = MNK_ATTENTION_OPTIONS_KERNEL_AUTOMATIC,
  /// Computes in `float32` throughout.
  MNKAttentionOptionsKernelVector = MNK_ATTENTION_OPTIONS_KERNEL_VECTOR,
  /// Takes queries, keys, values and weights as `float16` and sums in `float32`: up to eight rows cost what one costs.
  /// Queries of `float32` and `bfloat16`, and those of quantized caches, are first multiplied by a power of two for
  /// each row, so that they keep the precision of `float16` at any magnitude.
  MNKAttentionOptionsKernelMatrix = MNK_ATTENTION_OPTIONS_KERNEL_MATRIX,
};

/// What merges the parts of splits.
typedef NS_CLOSED_ENUM(uint32_t, MNKAttentionOptionsMerge) {
  /// The faster one on this device.
  MNKAttentionOptionsMergeAutomatic = MNK_ATTENTION_OPTIONS_MERGE_AUTOMATIC,
  /// A second dispatch.
  MNKAttentionOptionsMergeSeparate = MNK_ATTENTION_OPTIONS_MERGE_SEPARATE,
  /// The threadgroup that stores the last part, in the same dispatch. It needs a device that orders memory between
  /// threadgroups.
  MNKAttentionOptionsMergeInKernel = MNK_ATTENTION_OPTIONS_MERGE_IN_KERNEL,
};

/// How queries attend to the keys of a cache.
///
///     score[k] = cap(scale * <q, key k>) + slope * (position(k) - p) + mask[k]
///
/// for each key k that the row at position p sees. With a `softcap`, `cap(x) = softcap * tanh(x / softcap)`; otherwise,
/// `cap(x) = x`. Keys are counted from the oldest that the cache holds: first the pinned positions of a ring, then its
/// newest.
@interface MNKAttentionOptions : MNKDescriptor

/// Multiplies products of queries and keys, 1e-37 to 4e19 / headDim; 0 means `1 / sqrt(headDim)`. A latent cache
/// requires a scale.
///
/// Scores are computed in `float32`. Within these limits they are finite for all finite `float16` queries and keys.
/// Larger numbers can overflow, and the results are then NaN.
@property(nonatomic) float scale;
/// Whether a row sees nothing after its own position. `YES` by default.
@property(nonatomic, getter=isCausal) BOOL causal;
/// How many newest positions a row sees, including its own; 0 means all, or the window of a cache that was made with a
/// `MNKSlidingWindow`.
///
/// A window that reaches positions that a ring has overwritten is an error: a step of several rows needs
/// `window + rows - 1` slots.
@property(nonatomic) NSUInteger window;
/// Whether a row with a window also sees the pinned positions of a ring.
@property(nonatomic) BOOL windowSeesPinned;
/// Bounds scores to plus and minus this number, 1e-30 to 1e30; 0 means that they have no bound.
@property(nonatomic) float softcap;
/// Added to scores, of any float type: `[rows, keys]`, `[heads, rows, keys]` or `[sequences, heads, rows, keys]`.
///
/// Axes before the keys may be 1 and are then used for all; there may be more keys than the cache holds.
@property(nonatomic, nullable) MNKTensor *mask;
/// The slopes of ALiBi, `float32` `[heads]`.
@property(nonatomic, nullable) MNKTensor *slopes;
/// A score for each head that takes part in the softmax and adds no value, `float32` `[heads]`. Partial results cannot
/// have sinks.
@property(nonatomic, nullable) MNKTensor *sinks;
/// Parts that the keys of a sequence are divided into, at most 1024; 0 means the number that keeps the device busy.
@property(nonatomic) NSUInteger splits;
/// Which kernel computes. `MNKAttentionOptionsKernelAutomatic` by default.
@property(nonatomic) MNKAttentionOptionsKernel kernel;
/// What merges the parts of splits. `MNKAttentionOptionsMergeAutomatic` by default.
@property(nonatomic) MNKAttentionOptionsMerge merge;

@end

/// Attention over a part of the keys, for `MNKMergePartials` to finish.
///
/// Parts may come from several caches or devices. Each says where its rows are (`MNKAttendedSequence.position`), so
/// that causality, windows and slopes are those of the whole sequence.
@interface MNKAttentionPartials : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithSums:(MNKTensor *)sums stats:(MNKTensor *)stats NS_DESIGNATED_INITIALIZER;

/// Results before the division: `float32`, the axes of the queries with the head dim of values.
@property(nonatomic) MNKTensor *sums;
/// For each row rowMax, the largest score times log2(e) or at most 8 less, and rowSum, the sum of
/// `2^(score * log2(e) - rowMax)`: `float32`, the same axes with a last axis of 2. A row that sees no key has rowSum 0.
@property(nonatomic) MNKTensor *stats;

@end

/// The outputs of attention: results or partials, and optional extras.
///
/// For queries of any layout, axes before the last are `[sequences, rows, heads]`, or `[rows, heads]` for one sequence,
/// or `[heads]` for one row of one sequence.
@interface MNKAttentionResults : MNKDescriptor

/// Receives the results, in any float type: `[sequences, rows, heads, headDim]` with the head dim of values, without
/// the sequences if there is one, and without the rows if there is one of those too. This does not depend on the layout
/// of the queries. The result of a merge has the axes of its parts after the first.
@property(nonatomic, nullable) MNKTensor *output;
/// Receives partial results instead, to merge with others; not over an attention cache. Each sequence then says where
/// its rows are: `MNKAttendedSequence.position`.
@property(nonatomic, nullable, copy) MNKAttentionPartials *partials;
/// Receives the logarithm of the sum of `e^score` of each row, including a sink; `float32` with the axes of the results
/// without the last. Negative infinity if there is nothing to sum.
@property(nonatomic, nullable) MNKTensor *logSumExp;

@end

/// A sequence of a cache, and how many positions it has, including those of the queries.
@interface MNKAttendedSequence : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithSequence:(NSUInteger)sequence
                          length:(NSUInteger)length
                         highest:(NSUInteger)highest
                            rows:(NSUInteger)rows
                        position:(nullable NSNumber *)position NS_DESIGNATED_INITIALIZER;
- (instancetype)initWithSequence:(NSUInteger)sequence length:(NSUInteger)length;

/// Which sequence of the cache; `MNKOnlySequence` is that of a cache of one.
@property(nonatomic, readonly) NSUInteger sequence;
/// Its positions, less than 2^31. A length of 0 gives zeros.
@property(nonatomic, readonly) NSUInteger length;
/// The largest length that it has had since it was empty, if tokens were rolled back since; 0 means `length`. A ring
/// has lost what those tokens overwrote: it holds its pinned positions and the newest before this length.
@property(nonatomic, readonly) NSUInteger highest;
/// How many rows of the queries are of the sequence; 0 means the same number for each sequence, by the queries' shape.
/// With row counts, for all sequences or for none, queries and results are one list of all rows, and there is no mask.
@property(nonatomic, readonly) NSUInteger rows;
/// The position of the first row, counted from the cache's first key; without it, the rows are the newest tokens. If n
/// tokens, which are in other caches, come between the end of this one and the first row, the position is `length` + n.
/// It is below 0 if the cache begins after the row. Partial results need a position: a part without it would be masked
/// as if the rows were its newest tokens.
@property(nonatomic, readonly, nullable, copy) NSNumber *position;

@end

NS_ASSUME_NONNULL_END
