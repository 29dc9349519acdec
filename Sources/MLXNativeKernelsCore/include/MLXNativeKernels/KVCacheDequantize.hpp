// KVCacheDequantize dequantizes positions of a quantized cache, keys and values in one dispatch:
//   keys[t, head] = the key of position + t      for each token of the tensor
// either in the rotated domain of the codes, or rotated back to the original domain.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/KVCodec.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk {

struct KVCacheDequantize {
  static constexpr std::string_view name = "KVCacheDequantize";

  QuantizedKVCacheView from;
  uint64_t sequence = kOnlySequence;
  uint64_t position = 0;  // of the first token read; the op cannot detect what a ring has overwritten

  // f32, f16 or bf16, both alike; at least one of them. tokenMajor: [tokens, heads, headDim] or [heads, headDim] for
  // one token; headMajor: [heads, tokens, headDim]. With a first axis of sequences, their tokens follow each other.
  std::optional<Tensor> keys = {};
  std::optional<Tensor> values = {};
  KVLayout layout = KVLayout::tokenMajor;
  KVDomain domain = KVDomain::original;
};

// Checks every rule and returns what to run. Needs no device.
Result<Plan> plan(const KVCacheDequantize& op);

}  // namespace mnk
