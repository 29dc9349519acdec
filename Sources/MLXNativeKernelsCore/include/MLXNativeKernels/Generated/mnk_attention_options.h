// Generated from Sources/API by generate.py: change the description instead.
// How queries attend, and to what of a cache.
#ifndef MNK_ATTENTION_OPTIONS_H
#define MNK_ATTENTION_OPTIONS_H

#include "MLXNativeKernels/Generated/mnk_cache_views.h"
#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

// Which kernel computes.
typedef enum MNK_CLOSED(mnk_attention_options_kernel) {
  // The fastest on this device, but never the matrix kernel for f32 queries, which are more precise. On a GPU, it may
  // be the prefill kernel, which attends with any number of rows in one dispatch. That kernel does not merge splits
  // itself, so it is not used with `MNK_ATTENTION_OPTIONS_MERGE_IN_KERNEL`.
  MNK_ATTENTION_OPTIONS_KERNEL_AUTOMATIC = 0,
  // Computes in f32 throughout.
  MNK_ATTENTION_OPTIONS_KERNEL_VECTOR = 1,
  // Takes queries, keys, values and weights as f16 and sums in f32: up to eight rows cost what one costs. Queries of
  // f32 and bf16, and those of quantized caches, are first multiplied by a power of two for each row, so that they keep
  // the precision of f16 at any magnitude.
  MNK_ATTENTION_OPTIONS_KERNEL_MATRIX = 2,
} mnk_attention_options_kernel;

// What merges the parts of splits.
typedef enum MNK_CLOSED(mnk_attention_options_merge) {
  // The faster one on this device.
  MNK_ATTENTION_OPTIONS_MERGE_AUTOMATIC = 0,
  // A second dispatch.
  MNK_ATTENTION_OPTIONS_MERGE_SEPARATE = 1,
  // The threadgroup that stores the last part, in the same dispatch. It needs a device that orders memory between
  // threadgroups.
  MNK_ATTENTION_OPTIONS_MERGE_IN_KERNEL = 2,
} mnk_attention_options_merge;

// How queries attend to the keys of a cache.
//
//     score[k] = cap(scale * <q, key k>) + slope * (position(k) - p) + mask[k]
//
// for each key k that the row at position p sees. With a `softcap`, `cap(x) = softcap * tanh(x / softcap)`; otherwise,
// `cap(x) = x`. Keys are counted from the oldest that the cache holds: first the pinned positions of a ring, then its
// newest.
typedef struct mnk_attention_options {
  // Multiplies products of queries and keys, 1e-37 to 4e19 / headDim; 0 means `1 / sqrt(headDim)`. A latent cache
  // requires a scale.
  //
  // Scores are computed in f32. Within these limits they are finite for all finite f16 queries and keys. Larger numbers
  // can overflow, and the results are then NaN.
  float scale;
  // Whether a row also sees what comes after its own position.
  bool is_bidirectional;
  // How many newest positions a row sees, including its own; 0 means all, or the window of a cache that was made with a
  // `mnk_sliding_window`.
  //
  // A window that reaches positions that a ring has overwritten is an error: a step of several rows needs
  // `window + rows - 1` slots.
  uint32_t window;
  // Whether a row with a window also sees the pinned positions of a ring.
  bool window_sees_pinned;
  // Bounds scores to plus and minus this number, 1e-30 to 1e30; 0 means that they have no bound.
  float softcap;
  // Added to scores, of any float type: `[rows, keys]`, `[heads, rows, keys]` or `[sequences, heads, rows, keys]`.
  //
  // Axes before the keys may be 1 and are then used for all; there may be more keys than the cache holds.
  mnk_tensor* MNK_NULLABLE mask;
  // The slopes of ALiBi, f32 `[heads]`.
  mnk_tensor* MNK_NULLABLE slopes;
  // A score for each head that takes part in the softmax and adds no value, f32 `[heads]`. Partial results cannot have
  // sinks.
  mnk_tensor* MNK_NULLABLE sinks;
  // Parts that the keys of a sequence are divided into, at most 1024; 0 means the number that keeps the device busy.
  uint32_t splits;
  // Which kernel computes.
  mnk_attention_options_kernel kernel;
  // What merges the parts of splits.
  mnk_attention_options_merge merge;
} mnk_attention_options;

// Attention over a part of the keys, for `mnk_merge_partials` to finish.
//
// Parts may come from several caches or devices. Each says where its rows are (`mnk_attended_sequence.position`), so
// that causality, windows and slopes are those of the whole sequence.
//
// Without `sums` it is left out, and all of it must be 0.
typedef struct mnk_attention_partials {
  // Results before the division: f32, the axes of the queries with the head dim of values.
  mnk_tensor* MNK_NULLABLE sums;
  // For each row rowMax, the largest score times log2(e) or at most 8 less, and rowSum, the sum of
  // `2^(score * log2(e) - rowMax)`: f32, the same axes with a last axis of 2. A row that sees no key has rowSum 0.
  mnk_tensor* MNK_NULLABLE stats;
} mnk_attention_partials;

// The outputs of attention: results or partials, and optional extras.
//
// For queries of any layout, axes before the last are `[sequences, rows, heads]`, or `[rows, heads]` for one sequence,
// or `[heads]` for one row of one sequence.
typedef struct mnk_attention_results {
  // Receives the results, in any float type: `[sequences, rows, heads, headDim]` with the head dim of values, without
  // the sequences if there is one, and without the rows if there is one of those too. This does not depend on the
  // layout of the queries. The result of a merge has the axes of its parts after the first.
  mnk_tensor* MNK_NULLABLE output;
  // Receives partial results instead, to merge with others; not over an attention cache. Each sequence then says where
  // its rows are: `mnk_attended_sequence.position`.
  mnk_attention_partials partials;
  // Receives the logarithm of the sum of `e^score` of each row, including a sink; f32 with the axes of the results
  // without the last. Negative infinity if there is nothing to sum.
  mnk_tensor* MNK_NULLABLE log_sum_exp;
} mnk_attention_results;

// A sequence of a cache, and how many positions it has, including those of the queries.
typedef struct mnk_attended_sequence {
  // Which sequence of the cache; `MNK_ONLY_SEQUENCE` is that of a cache of one. 0 is the first sequence.
  uint64_t sequence;
  // Its positions, less than 2^31. A length of 0 gives zeros.
  uint64_t length;
  // The largest length that it has had since it was empty, if tokens were rolled back since; 0 means `length`. A ring
  // has lost what those tokens overwrote: it holds its pinned positions and the newest before this length.
  uint64_t highest;
  // How many rows of the queries are of the sequence; 0 means the same number for each sequence, by the queries' shape.
  // With row counts, for all sequences or for none, queries and results are one list of all rows, and there is no mask.
  uint64_t rows;
  // Whether `position` is used. Otherwise, it must be 0.
  bool has_position;
  // The position of the first row, counted from the cache's first key; without it, the rows are the newest tokens. If n
  // tokens, which are in other caches, come between the end of this one and the first row, the position is `length` +
  // n. It is below 0 if the cache begins after the row. Partial results need a position: a part without it would be
  // masked as if the rows were its newest tokens.
  int64_t position;
} mnk_attended_sequence;

MNK_HEADER_END

#endif
