// Generated from Sources/API by generate.py: change the description instead.
// Attention over caches that the caller owns: FlashDecode, and MergePartials for keys that were attended to in parts.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Generated/AttentionOptions.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Generated/QuantizedViews.hpp"
#include "MLXNativeKernels/KVCodec.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk {

class CommandEncoder;

// Attends tokens of sequences, by default the newest, to all that a cache holds of them.
//
// Row i of a sequence with `length` positions is the token at `p = length - rows + i`, or at `p = position + i` if
// there is a position (`AttendedSequence::position`). It sees the keys at positions up to p, and newer than
// `p - window` if there is a window:
//
//     out = sum over visible k of weight[k] * value k,      weight = softmax of the scores
//
// `AttentionOptions` says what scores are. A row that sees no key, or only keys of score -infinity, is zero; scores
// below -3.5e29 count as -infinity. What is not visible to a row is not read for it. Without a window, a row sees what
// a ring holds up to its own position: several rows, whose keys are all stored before the first attends, see less than
// one at a time.
//
// Caches may be dense or quantized; queries are rotated into the domain of codes, and results back, inside. Over a
// latent cache, key k is value k and then the rest of the key: queries are those of absorbed attention, in the order of
// keys.
struct FlashDecode {
  static constexpr std::string_view name = "FlashDecode";
  static constexpr uint64_t kMaxGroup = 128;  // query heads for each head of the cache
  // Of the vector and the matrix kernel. For more rows of head dims 64, 80, 96, 128, 192 and 256, and for several query
  // heads or rows over a latent cache, GPUs take a third kernel, which attends with all rows in one dispatch.
  static constexpr uint64_t kRowsPerPass = 8;
  static constexpr uint64_t kMaxSplits = 1024;

  // The memory that is attended to.
  using Cache = std::variant<KVCacheView, QuantizedKVCacheView>;

  // Queries of any float type; the tokens of the view are rows. A tensor is `[heads, headDim]` for one row,
  // `[rows, heads, headDim]`, or `[sequences, rows, heads, headDim]`. With row counts it is one view of all rows, as of
  // one sequence, and so are results.
  HeadsView queries;
  // The memory that is attended to.
  Cache cache;
  // One for each sequence of the queries, or any that say how many of the rows they have.
  std::vector<AttendedSequence> sequences = {};
  // Where results go.
  AttentionResults results = {};
  // How queries attend.
  AttentionOptions options = {};
  // Memory for results between dispatches: u8, of the scratch bytes of the plan. Without it, the device provides it.
  std::optional<Tensor> scratch = {};
};

// Checks every rule and returns what to run. Runs and compiles nothing.
// By default, on an unknown GPU.
Result<Plan> plan(const FlashDecode& op, const DeviceProfile& profile = {});
// For the profile of a device, which is probed first if the plan depends on what a probe finds out.
Result<Plan> plan(const FlashDecode& op, Device& device);
Result<void> encodeRepeated(CommandEncoder& encoder, const FlashDecode& op);

// Finishes attention whose keys were attended to in parts, on one device or on several: the result is that of
// `FlashDecode` over all keys at once. With the parts j of a row and their stats (rowMax, rowSum):
//
//     top = max over j of rowMax[j],   w[j] = 2^(rowMax[j] - top)
//     out = sum over j of w[j] * sums[j]  /  (sum over j of w[j] * rowSum[j] + 2^(sink * log2(e) - top))
struct MergePartials {
  static constexpr std::string_view name = "MergePartials";
  static constexpr uint64_t kMaxParts = 1024;
  // What is merged, with an axis of parts before those that `FlashDecode` writes; at most 1024 parts.
  AttentionPartials parts;
  // A score for each head that takes part in the softmax and adds no value, f32 `[heads]`; not if results are partials
  // again.
  std::optional<Tensor> sinks = {};
  // Where results go, with the axes of the parts after the first.
  AttentionResults results = {};
};

// Checks every rule and returns what to run. Needs no device.
Result<Plan> plan(const MergePartials& op);

}  // namespace mnk
