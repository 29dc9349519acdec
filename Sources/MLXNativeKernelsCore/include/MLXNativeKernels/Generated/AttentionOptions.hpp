// Generated from Sources/API by generate.py: change the description instead.
// How queries attend, and to what of a cache.
#pragma once
#include <cstdint>
#include <optional>
#include <tuple>

#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk {

// How queries attend to the keys of a cache.
//
//     score[k] = cap(scale * <q, key k>) + slope * (position(k) - p) + mask[k]
//
// for each key k that the row at position p sees. With a `softcap`, `cap(x) = softcap * tanh(x / softcap)`; otherwise,
// `cap(x) = x`. Keys are counted from the oldest that the cache holds: first the pinned positions of a ring, then its
// newest.
struct AttentionOptions {
  // Which kernel computes.
  enum class Kernel : uint32_t {
    // The fastest on this device, but never the matrix kernel for f32 queries, which are more precise. On a GPU, it may
    // be the prefill kernel, which attends with any number of rows in one dispatch. That kernel does not merge splits
    // itself, so it is not used with `AttentionOptions::Merge::inKernel`.
    automatic,
    // Computes in f32 throughout.
    vector,
    // Takes queries, keys, values and weights as f16 and sums in f32: up to eight rows cost what one costs. Queries of
    // f32 and bf16, and those of quantized caches, are first multiplied by a power of two for each row, so that they
    // keep the precision of f16 at any magnitude.
    matrix,
  };

  // What merges the parts of splits.
  enum class Merge : uint32_t {
    // The faster one on this device.
    automatic,
    // A second dispatch.
    separate,
    // The threadgroup that stores the last part, in the same dispatch. It needs a device that orders memory between
    // threadgroups.
    inKernel,
  };

  // Multiplies products of queries and keys, 1e-37 to 4e19 / headDim; 0 means `1 / sqrt(headDim)`. A latent cache
  // requires a scale.
  //
  // Scores are computed in f32. Within these limits they are finite for all finite f16 queries and keys. Larger numbers
  // can overflow, and the results are then NaN.
  float scale = 0;
  // Whether a row sees nothing after its own position.
  bool isCausal = true;
  // How many newest positions a row sees, including its own; 0 means all, or the window of a cache that was made with a
  // `SlidingWindow`.
  //
  // A window that reaches positions that a ring has overwritten is an error: a step of several rows needs
  // `window + rows - 1` slots.
  uint32_t window = 0;
  // Whether a row with a window also sees the pinned positions of a ring.
  bool windowSeesPinned = false;
  // Bounds scores to plus and minus this number, 1e-30 to 1e30; 0 means that they have no bound.
  float softcap = 0;
  // Added to scores, of any float type: `[rows, keys]`, `[heads, rows, keys]` or `[sequences, heads, rows, keys]`.
  //
  // Axes before the keys may be 1 and are then used for all; there may be more keys than the cache holds.
  std::optional<Tensor> mask = {};
  // The slopes of ALiBi, f32 `[heads]`.
  std::optional<Tensor> slopes = {};
  // A score for each head that takes part in the softmax and adds no value, f32 `[heads]`. Partial results cannot have
  // sinks.
  std::optional<Tensor> sinks = {};
  // Parts that the keys of a sequence are divided into, at most 1024; 0 means the number that keeps the device busy.
  uint32_t splits = 0;
  // Which kernel computes.
  Kernel kernel = Kernel::automatic;
  // What merges the parts of splits.
  Merge merge = Merge::automatic;
};

// Attention over a part of the keys, for `MergePartials` to finish.
//
// Parts may come from several caches or devices. Each says where its rows are (`AttendedSequence::position`), so that
// causality, windows and slopes are those of the whole sequence.
struct AttentionPartials {
  // Results before the division: f32, the axes of the queries with the head dim of values.
  Tensor sums;
  // For each row rowMax, the largest score times log2(e) or at most 8 less, and rowSum, the sum of
  // `2^(score * log2(e) - rowMax)`: f32, the same axes with a last axis of 2. A row that sees no key has rowSum 0.
  Tensor stats;
};

// The outputs of attention: results or partials, and optional extras.
//
// For queries of any layout, axes before the last are `[sequences, rows, heads]`, or `[rows, heads]` for one sequence,
// or `[heads]` for one row of one sequence.
struct AttentionResults {
  // Receives the results, in any float type: `[sequences, rows, heads, headDim]` with the head dim of values, without
  // the sequences if there is one, and without the rows if there is one of those too. This does not depend on the
  // layout of the queries. The result of a merge has the axes of its parts after the first.
  std::optional<Tensor> output = {};
  // Receives partial results instead, to merge with others; not over an attention cache. Each sequence then says where
  // its rows are: `AttendedSequence::position`.
  std::optional<AttentionPartials> partials = {};
  // Receives the logarithm of the sum of `e^score` of each row, including a sink; f32 with the axes of the results
  // without the last. Negative infinity if there is nothing to sum.
  std::optional<Tensor> logSumExp = {};
};

// A sequence of a cache, and how many positions it has, including those of the queries.
struct AttendedSequence {
  // Which sequence of the cache; `kOnlySequence` is that of a cache of one.
  uint64_t sequence = kOnlySequence;
  // Its positions, less than 2^31. A length of 0 gives zeros.
  uint64_t length = 0;
  // The largest length that it has had since it was empty, if tokens were rolled back since; 0 means `length`. A ring
  // has lost what those tokens overwrote: it holds its pinned positions and the newest before this length.
  uint64_t highest = 0;
  // How many rows of the queries are of the sequence; 0 means the same number for each sequence, by the queries' shape.
  // With row counts, for all sequences or for none, queries and results are one list of all rows, and there is no mask.
  uint64_t rows = 0;
  // The position of the first row, counted from the cache's first key; without it, the rows are the newest tokens. If n
  // tokens, which are in other caches, come between the end of this one and the first row, the position is `length` +
  // n. It is below 0 if the cache begins after the row. Partial results need a position: a part without it would be
  // masked as if the rows were its newest tokens.
  std::optional<int64_t> position = {};

  uint64_t written() const { return highest == 0 ? length : highest; }

  bool operator==(const AttendedSequence&) const = default;
};

// All fields except tensors: plans depend on every one.
inline auto numbersOf(const AttentionOptions& from) {
  const auto& [scale, isCausal, window, windowSeesPinned, softcap, mask, slopes, sinks, splits, kernel, merge] = from;
  return std::tie(scale, isCausal, window, windowSeesPinned, softcap, splits, kernel, merge);
}

}  // namespace mnk
