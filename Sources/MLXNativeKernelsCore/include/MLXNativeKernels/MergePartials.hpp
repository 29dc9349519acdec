// MergePartials finishes attention whose keys were attended to in parts, on one device or on several: the result is
// that of FlashDecode over all keys at once. With the parts j of a row and their stats (rowMax, rowSum):
//   top = max over j of rowMax[j],   w[j] = 2^(rowMax[j] - top)
//   out = sum over j of w[j] * sums[j]  /  (sum over j of w[j] * rowSum[j] + 2^(sink * log2(e) - top))
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "MLXNativeKernels/FlashDecode.hpp"

namespace mnk {

struct MergePartials {
  static constexpr std::string_view name = "MergePartials";
  static constexpr uint64_t kMaxParts = 1024;

  // With an axis of parts before those that FlashDecode writes: f32 [parts, …, heads, headDim] and [parts, …, heads,
  // 2], so that each part can be written to a slice of them.
  AttentionPartials partials;
  std::optional<Tensor> sinks = {};  // f32 [heads]; not if results are partials again
  AttentionResults results = {};     // axes before the last are those of the partials after their parts
};

Result<Plan> plan(const MergePartials& op);

}  // namespace mnk
