// Hadamard applies the Walsh-Hadamard transform in natural order to every vector along a tensor's last axis, scaled so
// that lengths do not change:
//   forward   y = H(s .* x) / sqrt(n)        inverse   y = s .* H(x) / sqrt(n)
// where s are the signs of a codec at this length, or ones. With a codec's signs, forward takes a query to the domain
// of its codes, and inverse takes the result of attention over them back. At 80, 96, 112 and 192 elements H / sqrt(n)
// is turbo's rotation by blocks: see KVCodec.hpp.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/KVCodec.hpp"
#include "MLXNativeKernels/Result.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk {

struct Hadamard {
  static constexpr std::string_view name = "Hadamard";
  static constexpr uint64_t kMaxLength = 4096;

  Tensor from;  // f32, f16 or bf16; its last axis is a power of two from 4 to 4096, or 80, 96, 112 or 192
  std::optional<Tensor> into = {};          // a float tensor of the same shape; without it, results replace `from`
  std::optional<KVCodec::Name> signs = {};  // of turbo or mlx1; other codecs have none
  bool isInverse = false;
};

// Checks every rule and returns what to run. Needs no device.
Result<Plan> plan(const Hadamard& op);

}  // namespace mnk
