// KVCacheQuantize stores new tokens in a quantized cache, as KVCacheWrite does in a dense one: the same sources, slots,
// rings and rows, keys and values of any number of tokens in one dispatch. See KVCodec.hpp for what is stored.
//
// turbo tries `candidates` sizes of the vector, keeps the codes whose direction is nearest to the vector's, and stores
// the requested scale, where c are the codebook values of the codes:
//   leastSquares  <r, c> / <c, c>   minimizes the error of the vector
//   unbiased      <r, r> / <r, c>   keeps the vector's component along itself, so that scores do not shrink
// A scale beyond the largest f16 becomes the largest. A vector that holds a NaN or an infinity when it is quantized is
// stored as zero, or with a scale that is NaN. Elements below 2^-125, or below 2^-100 of the vector's largest, count as
// zero. No vector affects what is stored for another.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/KVCacheWrite.hpp"
#include "MLXNativeKernels/KVCodec.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk {

struct KVCacheQuantize {
  static constexpr std::string_view name = "KVCacheQuantize";

  // Source: f32, f16 or bf16, with the fields and shapes of KVCacheWrite.
  HeadsView keys;
  std::optional<HeadsView> values = {};
  KVLayout sourceLayout = KVLayout::tokenMajor;
  uint64_t sourceOffset = 0;
  std::optional<uint64_t> tokens = {};
  bool sourceIsRing = false;

  // Destination.
  QuantizedKVCacheView into;
  uint64_t sequence = kOnlySequence;
  uint64_t position = 0;
  std::optional<KVCacheWrite::Rows> rows = {};

  KVQuantizeOptions options = {};
  // u32 [2]: the number of vectors with a NaN or an infinity, and of those whose scale was too large, are added.
  std::optional<Tensor> counts = {};
  // mlx1, one token: f32 [heads, headDim], the keys' elements as they are compared with boundaries.
  std::optional<Tensor> probe = {};
};

// Checks every rule and returns what to run. Needs no device.
Result<Plan> plan(const KVCacheQuantize& op);
Result<void> encodeRepeated(CommandEncoder& encoder, const KVCacheQuantize& op);

}  // namespace mnk
