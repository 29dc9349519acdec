// Generated from Sources/API by generate.py: change the description instead.
// KVCacheWrite, which stores tokens in a cache that the caller owns.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"

namespace mnk {

class CommandEncoder;

// One u32 for each token that is stored: numbers known in advance, which are checked, or a tensor that the kernel
// reads.
using RowIndices = std::variant<std::vector<uint32_t>, Tensor>;

// Stores new tokens in cache memory that the caller owns, converting to its element type.
//
// For every token t stored, head h and element e:
//
//     cache[sequence, h, slot(position + t), e] = keys[h, sourceOffset + t, e]
//
// and the same for values, in one dispatch. Equal element types copy bits unchanged; otherwise rounding is to nearest,
// ties to even. On a ring, a write longer than the ring keeps the newest tokens, with one writer for each slot.
//
// Source shapes are `[tokens, heads, headDim]` or `[heads, headDim]` for one token (token-major, the default), or
// `[heads, tokens, headDim]` (head-major); views can have any strides (`HeadsView`). Tokens of several sequences count
// one sequence after another: those of sequence s start at `s * tokens`.
struct KVCacheWrite {
  static constexpr std::string_view name = "KVCacheWrite";
  static constexpr uint64_t kMaxRows = 1024;  // lists are sent inside the dispatch, which is limited to 4 KiB
  // A sequence and a position for each of at most 1,024 source tokens. If several name the same slot, the last one
  // wins.
  struct Rows {
    // The sequence of each token; a tensor is u32.
    RowIndices sequences = {};
    // The position of each token; a tensor is u32.
    RowIndices positions = {};
  };

  // Source of the keys, of any float type.
  HeadsView keys;
  // Source of the values, of the same sequences and tokens; none stores only keys.
  std::optional<HeadsView> values = {};
  // The order of axes of `keys` and `values`. `KVLayout::headMajor` makes both views head-major. Views with strides
  // ignore it.
  KVLayout sourceLayout = KVLayout::tokenMajor;
  // First source token to store.
  uint64_t sourceOffset = 0;
  // How many tokens to store; without it, all that follow the offset.
  std::optional<uint64_t> tokens = {};
  // Whether source tokens wrap around, as when a ring without pinned positions is made linear. At most all tokens of
  // the source can be stored.
  bool sourceIsRing = false;
  // Where they go.
  KVCacheView into;
  // The sequence that tokens go to; `kOnlySequence` is that of a cache of one.
  uint64_t sequence = kOnlySequence;
  // The position of the first token stored.
  uint64_t position = 0;
  // A place for each source token, which replaces `sequence` and `position`.
  std::optional<Rows> rows = {};
};

// Checks every rule and returns what to run. Needs no device.
Result<Plan> plan(const KVCacheWrite& op);
Result<void> encodeRepeated(CommandEncoder& encoder, const KVCacheWrite& op);

}  // namespace mnk
