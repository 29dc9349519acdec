// RotaryAppend applies RoPE to queries and keys, and stores the keys with their values in a cache, in one dispatch. The
// bytes of the cache and of the rotated queries are identical to those of an out-of-place MultiRoPE followed by
// KVCacheWrite or KVCacheQuantize. The source queries and keys are not modified. Rotated queries are stored at the
// start of the plan's scratch memory, as [tokens of all sequences, heads, headDim] in their own dtype, where
// FlashDecode reads them. This op is internal to caches, because public plans do not share scratch memory.
#pragma once
#include <cstdint>
#include <string_view>
#include <variant>

#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"

namespace mnk {

struct RotaryAppend {
  static constexpr std::string_view name = "RotaryAppend";

  MultiRoPE rotation;       // of queries and keys; its result tensors are unset
  uint64_t firstToken = 0;  // index of the first of these tokens in a tensor of positions
  // Stores rotation.keys and the values of the same tokens. The write drops no token.
  using Append = std::variant<KVCacheWrite, KVCacheQuantize>;
  Append append;
};

// Bytes of the rotated queries at the start of scratch memory, rounded up to the alignment of what follows.
uint64_t rotatedQueryBytes(const HeadsView& queries);

// The rules of a rotation whose results go elsewhere.
Result<void> checkRotation(const MultiRoPE& op);

// Checks the rules of the append. The caller has checked the rotation of the whole call, of which this may be a part.
Result<Plan> plan(const RotaryAppend& op);

}  // namespace mnk
