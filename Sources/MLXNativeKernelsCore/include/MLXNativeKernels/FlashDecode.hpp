// FlashDecode attends tokens of sequences, by default the newest, to all that a cache holds of them. For query row i of
// a sequence that has `length` positions:
//   p          = length - rows + i, or position + i if the sequence has a `position`     the position of the row
//   score[k]   = cap(scale * <q, key k>) + slope * (position(k) - p) + mask[k]      for each visible key k
//   out        = sum over k of weight[k] * value k,   weight = softmax of the scores, with a sink's score beside them
// cap(x) = softcap * tanh(x / softcap), if there is a softcap. Keys are counted from the oldest that the cache holds:
// first the pinned positions of a ring, then its newest. Key k is visible to a row if both hold: position(k) <= p, or
// attention is not causal; and position(k) > p - window, or there is no window, or position(k) < pinned and the window
// sees pinned positions. With a window, a row whose window reaches positions that a ring has overwritten is refused;
// without one a row sees what the ring holds up to its own position, so several rows, whose keys are all stored before
// the first attends, see less than one at a time. A row that sees no key, or only keys of score -inf, is zero; scores
// below -3.5e29 count as -inf. Keys and values that are not visible to a row are not read for it, and cannot affect it.
//
// Over a latent cache, key k is value k and then the rest of the key, each of which is read once for both. Queries have
// the elements of both: those of absorbed attention, in the order of keys.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/HeadsView.hpp"
#include "MLXNativeKernels/KVCacheView.hpp"
#include "MLXNativeKernels/QuantizedKVCacheView.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk {

class CommandEncoder;

// A sequence of the cache, and how many positions it has, less than 2^31 and including those of the queries. A length
// of 0 gives zeros.
struct AttendedSequence {
  uint64_t sequence = kOnlySequence;
  uint64_t length = 0;
  // The largest length that the sequence has had since it was empty, if tokens were rolled back since; 0: length. A
  // ring has lost what those tokens overwrote: it holds its pinned positions and the newest before this length.
  uint64_t highest = 0;
  // How many rows of the queries are of the sequence; 0: the same number for each sequence, by the queries' shape. If
  // one sequence has a row count, all must. They then share one list of rows, in their order, without masks.
  uint64_t rows = 0;
  // The position of the first row; none: length - rows, because the rows are the newest tokens. If the cache holds a
  // part of the keys, such as a prompt that other caches continue, this counts from the part's first key: with n tokens
  // between the end of the part and the first row, it is length + n; it is below 0 if the part begins after the row.
  // Partials need it: a part without it would be masked as if the rows were its newest tokens.
  std::optional<int64_t> position = {};

  uint64_t written() const { return highest == 0 ? length : highest; }

  bool operator==(const AttendedSequence&) const = default;
};

// The vector kernel computes in f32 throughout. The matrix kernel takes queries, keys, values and weights as f16 and
// sums in f32: up to eight rows cost what one costs. Queries of f32 and bf16, and those of quantized caches, are first
// multiplied by a power of two for each row, so that they keep the precision of f16 at any magnitude. The automatic
// choice never takes it for f32 queries, which are more precise. For more than kRowsPerPass rows of head dims 64, 80,
// 96, 128, 192 and 256, and for several query heads or rows over a latent cache, it takes a third kernel on GPUs, which
// attends with all rows in one dispatch.
enum class FlashDecodeKernel : uint32_t { automatic, vector, matrix };

// What merges the parts of splits: a second dispatch, or, in the same dispatch, the threadgroup that stores the last
// part. The latter needs a device that orders memory between threadgroups.
enum class FlashDecodeMerge : uint32_t { automatic, separate, inKernel };

struct AttentionOptions {
  // At most 4e19 / headDim, so that scores of finite f16 queries and keys are finite; 0: 1 / sqrt(headDim). A latent
  // cache does not know the head dim of its model and needs one.
  float scale = 0;
  bool isCausal = true;
  uint32_t window = 0;            // how many newest positions a row sees, including its own; 0: all
  bool windowSeesPinned = false;  // with a window, a row also sees the pinned positions of a ring
  float softcap = 0;              // 0: none
  // Added to scores: f32, f16 or bf16 [rows, keys], [heads, rows, keys] or [sequences, heads, rows, keys]. Axes before
  // the keys may be 1 and are then used for all; there may be more keys than the cache holds.
  std::optional<Tensor> mask = {};
  std::optional<Tensor> slopes = {};  // f32 [heads]: of ALiBi
  std::optional<Tensor> sinks = {};   // f32 [heads]: a score that takes part in the softmax and adds no value

  uint32_t splits = 0;  // parts that a sequence's keys are divided into; 0: chosen to keep the device busy
  FlashDecodeKernel kernel = FlashDecodeKernel::automatic;
  FlashDecodeMerge merge = FlashDecodeMerge::automatic;
};
// All options but the tensors: plans depend on every one. This does not compile until it names a new field.
inline auto numbersOf(const AttentionOptions& options) {
  const auto& [scale, isCausal, window, seesPinned, softcap, mask, slopes, sinks, splits, kernel, merge] = options;
  return std::tuple(scale, isCausal, window, seesPinned, softcap, splits, kernel, merge);
}

// Attention over a part of the keys, for MergePartials to finish. Results before the division, and what to divide them
// by: rowMax, the largest score times log2(e) or at most 8 less, and rowSum, the sum of 2^(score * log2(e) - rowMax). A
// row that sees no key has rowSum 0.
struct AttentionPartials {
  Tensor sums;   // f32 [rows, heads, valueHeadDim], with the axes of results
  Tensor stats;  // f32 [rows, heads, 2]
};

// The outputs of attention: results or partials, and optional extras. For queries of any layout, axes before the last
// are [sequences, rows, heads], or [rows, heads] for one sequence, or [heads] for one row of one sequence.
struct AttentionResults {
  std::optional<Tensor> into = {};  // f32, f16 or bf16, with the values' head dim
  std::optional<AttentionPartials> partials = {};
  // f32, only those axes: the logarithm of the sum of e^score, including a sink; -inf if there is nothing to sum.
  std::optional<Tensor> logSumExp = {};
};

struct FlashDecode {
  static constexpr std::string_view name = "FlashDecode";
  static constexpr uint64_t kMaxGroup = 128;   // query heads for each head of the cache
  static constexpr uint64_t kRowsPerPass = 8;  // of the vector and the matrix kernel
  static constexpr uint64_t kMaxSplits = 1024;

  // f32, f16 or bf16, a token of the view for each row. A tensor is [heads, headDim] for one row, [rows, heads,
  // headDim], or [sequences, rows, heads, headDim]; a view can also be head-major or have strides. With row counts it
  // is one view of all rows, as of one sequence, and so are results.
  HeadsView queries;
  std::variant<KVCacheView, QuantizedKVCacheView> over;
  std::vector<AttendedSequence> sequences = {};  // one for each sequence of the queries, or with row counts
  AttentionResults results = {};
  AttentionOptions options = {};
  // Memory for results between dispatches: u8, of the plan's scratchBytes. Without it, the device provides it.
  std::optional<Tensor> scratch = {};
};

// Checks every rule and returns what to run on a device with this profile; by default, on an unknown GPU. Runs and
// compiles nothing.
Result<Plan> plan(const FlashDecode& op, const DeviceProfile& profile = {});
// For the profile of a device, which is probed first if the plan depends on what a probe finds out.
Result<Plan> plan(const FlashDecode& op, Device& device);
Result<void> encodeRepeated(CommandEncoder& encoder, const FlashDecode& op);

}  // namespace mnk
