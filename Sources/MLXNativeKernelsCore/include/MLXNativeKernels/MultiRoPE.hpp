// MultiRoPE rotates queries, and keys in the same dispatch, by their positions:
//   into[sequence, token, head] = rotated(from[sequence, token, head])
// by default in place, in f32, f16 or bf16, computing in f32; in one dispatch, or in two if queries and keys differ in
// dtypes or only one of them is rotated in place. Angles are computed in integers, as fractions of a turn, so position
// one million is as exact as position one.
//
// How positions rotate the pairs of a vector x of headDim elements. Pair p, with elements a and b, becomes
//   out[a] = m (x[a] cos t - x[b] sin t)      t = position[axis(p)] * frequency(p)
//   out[b] = m (x[a] sin t + x[b] cos t)      for p < ropeDim / 2; all other elements are kept
// with frequency(p) = scale * base^(-2p / ropeDim) / frequencyFactors[p] and m = 1, or both as YaRN defines. VISION
// starts its exponents again in each section: base^(-2q / (headDim / 2)), where q counts from the section's first pair.
//
// Sections divide the pairs among up to four axes of positions (time, height, width, and one more):
//   mrope    s0 pairs of axis 0, then s1 of axis 1, s2 of axis 2, s3 of axis 3, and again from the first
//   imrope   of the pairs of one round, p mod 3 == a goes to axis a while p < 3 s(a), others to `otherAxis`
//   vision   s0 pairs of axis 0 (y), s1 of axis 1 (x)
// A round is as long as the sum of the sections.
//
// YaRN scales pairs that make fewer than betaSlow turns in the original context, keeps those that make more than
// betaFast turns, and blends between them:
//   frequency(p) = (scale (1 - k) + k) * base^(-2p / ropeDim) / frequencyFactors[p]
//   k = extensionFactor * (1 - clamp((p - low) / max(0.001, high - low), 0, 1))
//   low = max(0, floor(pair(betaFast))), high = min(ropeDim - 1, ceil(pair(betaSlow))), or both without rounding
//   pair(turns) = ropeDim ln(originalContext / (2 pi turns)) / (2 ln base)
//   m = attentionFactor * (1 + 0.1 ln(1 / scale)), or only attentionFactor if extensionFactor is 0
// as ggml does. A configuration's `factor` is 1 / scale. Its `attention_factor`, in transformers, is all of m and must
// be divided by 1 + 0.1 ln(1 / scale). The blend needs betaFast > betaSlow and a scale of at most 1, because swapped
// betas or `factor` itself as scale would silently give other frequencies. With an extensionFactor of 0, neither is
// required; what remains is the factor m, which is what LongRoPE has beside its frequency factors.
#pragma once
#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Generated/Rotary.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk {

class CommandEncoder;
struct MultiRoPE;
struct RotaryPositions;

// Where positions come from that are known only when an op is encoded, such as the next ones of a cache.
class PositionSource {
 public:
  virtual ~PositionSource() = default;
  // The positions of these tokens: a number, a list or a tensor. A number would count from the start of every entry of
  // a step; `asList` asks for a list of all tokens instead.
  // `rotation` is the op that asks, or null for one that keeps what it rotates to itself.
  virtual Result<RotaryPositions> resolve(CommandEncoder& encoder, const HeadsView& tokens, const MultiRoPE* rotation,
                                          bool asList) const = 0;
  // The op that asked for them last has been recorded.
  virtual void recorded(CommandEncoder& encoder, const MultiRoPE* rotation) const noexcept = 0;
};

// The position of each token, from -2^31 to 2^31 - 1, on 1 to 4 axes. One axis is used for all of them, as for text.
//   a number   of the first token of every sequence; those that follow count up
//   a list     axis after axis, in each all tokens of all sequences; known in advance, so the rules check it
//   a tensor   the same in i32, or in u32 up to 2^32 - 1: [tokens of all sequences], [axes, tokens of all sequences] or
//              [axes, sequences, tokens]; read by the kernel, which takes what an offset moves further modulo 2^32
//   a source   asked when the op is encoded: AttentionCache::nextPositions
struct RotaryPositions {
  struct List {
    std::vector<int32_t> numbers;
    uint32_t axes = 1;
  };
  std::variant<int64_t, List, Tensor, std::shared_ptr<const PositionSource>> source = int64_t{0};

  RotaryPositions() = default;
  template <std::integral Number>
  RotaryPositions(Number first)
      : source(std::in_range<int64_t>(first) ? static_cast<int64_t>(first) : std::numeric_limits<int64_t>::max()) {}
  RotaryPositions(std::vector<int32_t> numbers, uint32_t axes = 1) : source(List{std::move(numbers), axes}) {}
  RotaryPositions(Tensor tensor) : source(std::move(tensor)) {}
  // Null has a position that the rules refuse.
  RotaryPositions(std::shared_ptr<const PositionSource> from) : source(std::numeric_limits<int64_t>::max()) {
    if (from) source = std::move(from);
  }

  const PositionSource* follows() const {
    const auto* from = std::get_if<std::shared_ptr<const PositionSource>>(&source);
    return from ? from->get() : nullptr;
  }
  bool areNumbers() const { return source.index() < 2; }
};

// One number for each sequence: a list, or an i32 or u32 tensor.
using RotaryOffsets = std::variant<std::vector<int32_t>, Tensor>;

struct MultiRoPE {
  static constexpr std::string_view name = "MultiRoPE";
  static constexpr uint64_t kMaxRopeDim = 1024;  // frequencies are sent inside the dispatch, which is limited to 4 KiB
  static constexpr uint64_t kMaxListed = 1024;   // and so do lists

  HeadsView queries;
  std::optional<HeadsView> keys = {};  // with other heads, otherwise the same as queries
  // Where results go, with their own dtypes and strides; in place by default.
  std::optional<HeadsView> rotatedQueries = {};
  std::optional<HeadsView> rotatedKeys = {};

  RotaryPositions positions = {};
  std::optional<RotaryOffsets> offsets = {};  // added to all positions of a sequence, such as a model's rope delta
  RotaryEmbedding rotary = {};
};

// Checks every rule and returns what to run. Needs no device.
Result<Plan> plan(const MultiRoPE& op);
Result<void> encodeRepeated(CommandEncoder& encoder, const MultiRoPE& op);

}  // namespace mnk
