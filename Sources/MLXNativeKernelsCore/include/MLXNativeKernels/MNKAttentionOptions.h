#import <MLXNativeKernels/MNKDescriptor.h>

@class MNKTensor;

NS_ASSUME_NONNULL_BEGIN

/// Which kernel attends.
typedef NS_CLOSED_ENUM(uint32_t, MNKFlashDecodeKernel) {
  /// The one that suits the device and the operands. For more than eight rows on a GPU it may be a third, which attends
  /// with all of them in one dispatch.
  MNKFlashDecodeKernelAutomatic = 0,
  /// Computes in `float32` throughout.
  MNKFlashDecodeKernelVector,
  /// Takes queries, keys, values and weights as `float16` and sums in `float32`; one to eight rows take the same time.
  MNKFlashDecodeKernelMatrix,
};

/// What merges the parts that a sequence's keys are divided into.
typedef NS_CLOSED_ENUM(uint32_t, MNKFlashDecodeMerge) {
  MNKFlashDecodeMergeAutomatic = 0,
  /// A second dispatch.
  MNKFlashDecodeMergeSeparate,
  /// The threadgroup that stores the last part. Not every device can.
  MNKFlashDecodeMergeInKernel,
};

/// How queries attend. All of it may be left at its default.
@interface MNKAttentionOptions : MNKDescriptor

/// Multiplies products of queries and keys, at most 4e19 / headDim; 0 means 1 / sqrt(headDim).
@property(nonatomic) float scale;
/// Whether a row sees nothing after its own position; `YES` by default.
@property(nonatomic, getter=isCausal) BOOL causal;
/// How many newest positions a row sees, including its own; 0 means all, or the window of a sliding-window cache. A row
/// whose window reaches positions that a ring has overwritten is an error.
@property(nonatomic) NSUInteger window;
/// Whether a row with a window also sees the pinned positions of a ring.
@property(nonatomic) BOOL windowSeesPinned;
/// Scores become softcap * tanh(score / softcap); 0 means none.
@property(nonatomic) float softcap;
/// Added to scores, oldest visible key first: any float type, `[rows, keys]`, `[heads, rows, keys]` or
/// `[sequences, heads, rows, keys]`. Axes before the keys may be 1 and are then used for all.
@property(nonatomic, nullable) MNKTensor *mask;
/// `float32`, `[heads]`: the slopes of ALiBi.
@property(nonatomic, nullable) MNKTensor *slopes;
/// `float32`, `[heads]`: a score that takes part in the softmax and adds no value.
@property(nonatomic, nullable) MNKTensor *sinks;
/// Parts that a sequence's keys are divided into; 0 chooses a number that keeps the device busy.
@property(nonatomic) NSUInteger splits;
@property(nonatomic) MNKFlashDecodeKernel kernel;
@property(nonatomic) MNKFlashDecodeMerge merge;

@end

/// Attention over a part of the keys, for `MNKMergePartials` to finish.
@interface MNKAttentionPartials : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

- (instancetype)initWithSums:(MNKTensor *)sums stats:(MNKTensor *)stats NS_DESIGNATED_INITIALIZER;

/// Results before the division: `float32`, the axes of results with the values' head dim.
@property(nonatomic) MNKTensor *sums;
/// What to divide them by: `float32`, the axes of results with a last axis of 2.
@property(nonatomic) MNKTensor *stats;

@end

/// The outputs of attention: results or partials, and optional extras. For queries of any layout, axes before the last
/// are `[sequences, rows, heads]`, `[rows, heads]` for one sequence, or `[heads]` for one row.
@interface MNKAttentionResults : MNKDescriptor

+ (instancetype)resultsIntoTensor:(MNKTensor *)output;
+ (instancetype)resultsIntoPartials:(MNKAttentionPartials *)partials;

/// Any float type, with the values' head dim.
@property(nonatomic, nullable) MNKTensor *output;
@property(nonatomic, nullable, copy) MNKAttentionPartials *partials;
/// `float32`, without the last axis: the logarithm of the sum of e^score, including a sink.
@property(nonatomic, nullable) MNKTensor *logSumExp;

@end

NS_ASSUME_NONNULL_END
