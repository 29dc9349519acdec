// Generated from Sources/API by generate.py: change the description instead.
// Ops on quantized caches that the caller owns: KVCacheQuantize, KVCacheDequantize and Hadamard.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "MLXNativeKernels/Generated/QuantizedViews.hpp"
#include "MLXNativeKernels/KVCodec.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk {

class CommandEncoder;

// Stores new tokens in a quantized cache that the caller owns.
//
// For every token t stored and head h:
//
//     cache[sequence, h, slot(position + t)] = quantized(keys[h, sourceOffset + t])
//
// as `KVCodec` says, and the same for values, in one dispatch. Sources, slots, rings and rows are those of
// `KVCacheWrite`. No vector affects what is stored for another.
//
// A scale beyond the largest f16 becomes the largest. Elements below 2^-125, or below 2^-100 of the vector's largest,
// count as zero.
struct KVCacheQuantize {
  static constexpr std::string_view name = "KVCacheQuantize";
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
  QuantizedKVCacheView into;
  // The sequence that tokens go to; `kOnlySequence` is that of a cache of one.
  uint64_t sequence = kOnlySequence;
  // The position of the first token stored.
  uint64_t position = 0;
  // A place for each source token, which replaces `sequence` and `position`.
  std::optional<KVCacheWrite::Rows> rows = {};
  // How vectors are quantized where the format allows a choice.
  KVQuantizeOptions options = {};
  // Of u32, `[2]`: the number of vectors with a NaN or an infinity, and of those whose scale exceeds the largest f16,
  // are added.
  std::optional<Tensor> counts = {};
  // For one token of `KVCodec::Name::mlx1`: of f32, `[heads, headDim]`, receives the keys' elements as they are
  // compared with boundaries.
  std::optional<Tensor> probe = {};
};

// Checks every rule and returns what to run. Needs no device.
Result<Plan> plan(const KVCacheQuantize& op);
Result<void> encodeRepeated(CommandEncoder& encoder, const KVCacheQuantize& op);

// Dequantizes positions of a quantized cache, keys and values in one dispatch.
//
//     keys[t, h] = the key of head h at position + t      for each token of the tensor
//
// Shapes are `[tokens, heads, headDim]` or `[heads, headDim]` for one token (token-major, the default), or
// `[heads, tokens, headDim]` (head-major). With a first axis of sequences, their tokens follow each other: all are of
// the one sequence that is read. The op cannot detect what a ring has overwritten.
struct KVCacheDequantize {
  static constexpr std::string_view name = "KVCacheDequantize";
  // The cache that is read.
  QuantizedKVCacheView from;
  // The sequence that is read; `kOnlySequence` is that of a cache of one.
  uint64_t sequence = kOnlySequence;
  // The position of the first token read.
  uint64_t position = 0;
  // Receives the keys, in any float type; none reads only values.
  std::optional<Tensor> keys = {};
  // Receives the values, in the same type; none reads only keys.
  std::optional<Tensor> values = {};
  // The order of axes of keys and values.
  KVLayout layout = KVLayout::tokenMajor;
  // The domain of what is read.
  KVDomain domain = KVDomain::original;
};

// Checks every rule and returns what to run. Needs no device.
Result<Plan> plan(const KVCacheDequantize& op);

// Applies the Walsh-Hadamard transform in natural order to every vector along a tensor's last axis, scaled so that
// lengths do not change.
//
//     forward   y = H(s .* x) / sqrt(n)        inverse   y = s .* H(x) / sqrt(n)
//
// where n is a power of two from 4 to 4096 and s are the signs of a codec at this length, or ones. With a codec's
// signs, forward takes a query to the domain of its codes, and inverse takes the result of attention over them back. At
// 80, 96, 112 and 192 elements H / sqrt(n) is the rotation by blocks of `KVCodec::Name::turbo`.
//
// Attention does both inside: only a kernel of your own that attends over codes needs them.
struct Hadamard {
  static constexpr std::string_view name = "Hadamard";
  static constexpr uint64_t kMaxLength = 4096;
  // The vectors, of any float type.
  Tensor from;
  // Where results go, of the same shape and any float type; none means in place.
  std::optional<Tensor> into = {};
  // The codec whose signs are used; none means none. `KVCodec::Name::turbo` has signs at 32, 64, 80, 96, 112, 128, 192,
  // 256 and 512, `KVCodec::Name::mlx1` at 256 and 512, with ones at other powers of two. Other codecs have none.
  std::optional<KVCodec::Name> signs = {};
  // Whether to undo the transform.
  bool isInverse = false;
};

// Checks every rule and returns what to run. Needs no device.
Result<Plan> plan(const Hadamard& op);

}  // namespace mnk
