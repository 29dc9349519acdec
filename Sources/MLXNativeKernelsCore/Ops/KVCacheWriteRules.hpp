// The contract of KVCacheWrite, and the numbers that its rules and its plan both need.
#pragma once
#include <cstdint>
#include <span>

#include "MLXNativeKernels/KVCacheWrite.hpp"
#include "Support/Rule.hpp"

namespace mnk {

// The rules in the order they are checked.
std::span<const Rule<KVCacheWrite>> kvCacheWriteRules();

// The source as [heads, tokens, headDim] whatever its layout; zeros for a tensor of the wrong rank.
struct KVSourceShape {
  uint64_t heads = 0;
  uint64_t tokens = 0;
  uint64_t headDim = 0;
};
KVSourceShape sourceShape(const Tensor& tensor, KVLayout layout);

// Source tokens to store, before a ring drops the oldest.
uint64_t tokenCount(const KVCacheWrite& op);

}  // namespace mnk
