// RotaryAppend rotates queries and keys by their positions, and stores the keys with their values in a cache, in one
// dispatch. The bytes of the cache and of the rotated queries are those that MultiRoPE, not in place, and KVCacheWrite
// or KVCacheQuantize make, one after the other. Queries and keys stay as they are. Rotated queries go to the start of
// the plan's scratch memory: [tokens of all sequences, heads, headDim], in their own dtype, for FlashDecode to read
// there. Only caches use it: no user plans with scratch memory that another plan reads.
#pragma once
#include <cstdint>
#include <string_view>
#include <variant>

#include "MLXNativeKernels/KVCacheQuantize.hpp"
#include "MLXNativeKernels/KVCacheWrite.hpp"
#include "MLXNativeKernels/MultiRoPE.hpp"

namespace mnk {

struct RotaryAppend {
  static constexpr std::string_view name = "RotaryAppend";

  MultiRoPE rotation;       // of queries and keys, with no place for results
  uint64_t firstToken = 0;  // that a tensor of positions has for these tokens; those before it are of others
  // Stores rotation.keys, and values of the same tokens. No token is too old for the ring.
  std::variant<KVCacheWrite, KVCacheQuantize> append;
};

// What queries take at the start of scratch memory, up to where other things can follow.
uint64_t rotatedQueryBytes(const HeadsView& queries);

// The rules of a rotation whose results go elsewhere.
Result<void> checkRotation(const MultiRoPE& op);

// Checks the rules of what is appended; those of the rotation have been checked, for all tokens that it is part of.
Result<Plan> plan(const RotaryAppend& op);

}  // namespace mnk
