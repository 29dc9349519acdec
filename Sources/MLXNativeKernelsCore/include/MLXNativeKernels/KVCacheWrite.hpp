// KVCacheWrite stores new tokens, converting to the cache's dtype (round to nearest even):
//   cache[sequence, head, slotOf(position + t), e] = keys[head, sourceOffset + t, e]     for t < tokens
// and the same for values, in one dispatch. Equal dtypes copy bits unchanged. On a ring a write longer than the ring
// keeps the newest tokens, with one writer for each slot. With `rows`, source token i goes to its own sequence and
// position; if several rows name the same slot, the last one wins.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Result.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk {

class CommandEncoder;

// One u32 per token that is stored: numbers known in advance (checked by the rules), or a tensor that the kernel reads.
using RowIndices = std::variant<std::vector<uint32_t>, Tensor>;

struct KVCacheWrite {
  static constexpr std::string_view name = "KVCacheWrite";
  static constexpr uint64_t kMaxRows = 1024;  // lists of them are sent inside the dispatch, which is limited to 4 KiB

  struct Rows {
    RowIndices sequences;
    RowIndices positions;
  };

  // Source: views of vectors, or tensors with one of the shapes that HeadsView reads. The tokens of several sequences
  // count one sequence after another: those of sequence s start at s * tokens.
  HeadsView keys;
  std::optional<HeadsView> values = {};  // of the same sequences and tokens
  // headMajor makes both views head-major. Views with strides ignore it.
  KVLayout sourceLayout = KVLayout::tokenMajor;
  uint64_t sourceOffset = 0;            // first source token to store
  std::optional<uint64_t> tokens = {};  // how many; all that follow the offset by default
  bool sourceIsRing = false;            // source token index wraps: this linearizes a ring

  // Destination.
  KVCacheView into;
  uint64_t sequence = kOnlySequence;
  uint64_t position = 0;          // of the first token stored
  std::optional<Rows> rows = {};  // replaces sequence and position
};

// Checks every rule and returns what to run. Needs no device.
Result<Plan> plan(const KVCacheWrite& op);
Result<void> encodeRepeated(CommandEncoder& encoder, const KVCacheWrite& op);

}  // namespace mnk
