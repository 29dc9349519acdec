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
#include <variant>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Generated/AttentionOptions.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/KVCodec.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk {

class CommandEncoder;

struct FlashDecode {
  static constexpr std::string_view name = "FlashDecode";
  static constexpr uint64_t kMaxGroup = 128;  // query heads for each head of the cache
  // Of the vector and the matrix kernel. For more rows of head dims 64, 80, 96, 128, 192 and 256, and for several query
  // heads or rows over a latent cache, GPUs take a third kernel, which attends with all rows in one dispatch.
  static constexpr uint64_t kRowsPerPass = 8;
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
