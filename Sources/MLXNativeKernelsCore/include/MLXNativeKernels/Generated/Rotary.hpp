// Generated from Sources/API by generate.py: change the description instead.
// How positions rotate queries and keys.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

namespace mnk {

// How positions rotate the pairs of a vector.
//
// Pair p, with elements a and b, becomes
//
//     out[a] = m (x[a] cos t - x[b] sin t)      t = position[axis(p)] * frequency(p)
//     out[b] = m (x[a] sin t + x[b] cos t)      for p < ropeDim / 2; all others are kept
//
// with frequency(p) = scale * base^(-2p / ropeDim) / frequencyFactors[p] and m = 1, or both as YaRN defines.
//
// VISION starts its exponents again in each section: base^(-2q / (headDim / 2)), where q counts from the section's
// first pair. Sections divide the pairs among up to four axes of positions (time, height, width, and one more):
//
//     mrope    s0 pairs of axis 0, then s1 of axis 1, s2 of axis 2, s3 of axis 3, and again from the first
//     imrope   of the pairs of one round, p mod 3 == a goes to axis a while p < 3 s(a), others to `otherAxis`
//     vision   s0 pairs of axis 0 (y), s1 of axis 1 (x)
//
// A round is as long as the sum of the sections. YaRN is as in ggml:
//
//     frequency(p) = (scale (1 - k) + k) * base^(-2p / ropeDim) / frequencyFactors[p]
//     k = extensionFactor * (1 - clamp((p - low) / max(0.001, high - low), 0, 1))
//     low = max(0, floor(pair(betaFast))), high = min(ropeDim - 1, ceil(pair(betaSlow))), or both without rounding
//     pair(turns) = ropeDim ln(originalContext / (2 pi turns)) / (2 ln base)
//     m = attentionFactor * (1 + 0.1 ln(1 / scale)), or only attentionFactor if extensionFactor is 0
//
// Swapped betas, or a configuration's `factor` itself as scale, would silently give other frequencies: both are
// refused.
struct RotaryEmbedding {
  // Which elements make a pair, and which axis of positions rotates it. The numbers are those of ggml's rope types,
  // which mlx-native calls modes.
  enum class Layout : uint32_t {
    // Elements 2p and 2p + 1.
    interleavedPairs = 0,
    // Elements p and p + half. All layouts that follow do the same unless the pairing says otherwise.
    halfSplit = 2,
    // The given number of pairs of each axis, one axis after another, and again from the first in rounds of their sum.
    // Pairs beyond the rotated part are not used, as in ggml: check that the sum is half the rotated part.
    mrope = 8,
    // The given number of pairs of y (axis 0), then of x (axis 1). Each axis counts its pairs q from 0 and rotates them
    // by `base^(-2q / (headDim / 2))`.
    vision = 24,
    // Axes take turns: p mod 3 is the axis while p is less than three times its section; other pairs go to
    // `RotaryEmbedding::otherAxis`. The fourth number only lengthens a round.
    imrope = 40,
  };

  // The partner of an element, except with interleaved pairs, which have one of their own.
  enum class Pairing : uint32_t {
    // Half of the rotated part away, as in MLX, ggml and transformers.
    halfOfRopeDim,
    // Half of the head away, as in mlx-native. It differs where the rotated part is less than the head.
    halfOfHeadDim,
    // The next one: 2p and 2p + 1. With sections this is what GLM-4V has.
    neighbors,
  };

  // Where pairs of imrope outside of all sections go.
  enum class OtherAxis : uint32_t {
    // To axis 0, time, as in transformers, with whose code these models were published.
    axis0,
    // To axis 3, as in ggml and mlx-native. ggml's callers fill it with 0 for text: such pairs are then not rotated.
    axis3,
  };

  // Scales pairs that make fewer than `betaSlow` turns in the original context, keeps those that make more than
  // `betaFast` turns, and blends between them. Multiplies the result by `attentionFactor * (1 + 0.1 ln(1 / scale))`.
  //
  // The `factor` of a model's configuration is `1 / scale`: pass `RotaryEmbedding::scale` as well. What transformers
  // calls `attention_factor` is all of the product above. The call fails if `betaFast` is not greater than `betaSlow`,
  // or if the scale is greater than 1. With an `extensionFactor` of 0, neither is required; what remains is
  // `attentionFactor`, which is what LongRoPE has beside its `RotaryEmbedding::frequencyFactors`.
  struct YaRN {
    // Tokens of the context that the model was trained with.
    uint64_t originalContext = 0;
    // Share of the blend, from 0 to 1; 0 scales every pair and omits the logarithm.
    float extensionFactor = 1;
    // A factor of the result.
    float attentionFactor = 1;
    // The number of turns from which a pair is kept.
    float betaFast = 32;
    // The number of turns up to which a pair is scaled.
    float betaSlow = 1;
    // Whether the pairs where the blend begins and ends are rounded; `false` is `"truncate": false` of a configuration.
    bool roundsCorners = true;
  };

  // Which elements make a pair, and which axis rotates it.
  Layout layout = Layout::halfSplit;
  // Up to four numbers of pairs, for mrope and imrope, and the first two for vision.
  std::array<uint32_t, 4> sections = {};
  // The base of the frequencies.
  double base = 10000;
  // How many elements are rotated, at most 1024; 0 means all of a head.
  uint64_t ropeDim = 0;
  // The partner of an element.
  Pairing pairing = Pairing::halfOfRopeDim;
  // Which axis rotates pairs of imrope outside of all sections.
  OtherAxis otherAxis = OtherAxis::axis0;
  // Multiplies positions: 0.25 for a context four times as long. With YaRN, at most 1.
  double scale = 1;
  // A divisor for each pair's frequency; with infinity, a pair is not rotated. Without any, nothing is divided.
  //
  // Llama 3's scaling comes as such factors. A model's own table of periods, as MLX takes it, is this with a base of 1.
  std::vector<float> frequencyFactors = {};
  // Scales some pairs more than others.
  std::optional<YaRN> yarn = {};
  // Whether to undo the rotation.
  bool isInverse = false;
};

// All fields except tensors: plans depend on every one.
inline auto numbersOf(const RotaryEmbedding::YaRN& from) {
  const auto& [originalContext, extensionFactor, attentionFactor, betaFast, betaSlow, roundsCorners] = from;
  return std::tie(originalContext, extensionFactor, attentionFactor, betaFast, betaSlow, roundsCorners);
}

// All fields except tensors: plans depend on every one.
inline auto numbersOf(const RotaryEmbedding& from) {
  const auto& [layout, sections, base, ropeDim, pairing, otherAxis, scale, frequencyFactors, yarn, isInverse] = from;
  return std::tie(layout, sections, base, ropeDim, pairing, otherAxis, scale, frequencyFactors, yarn, isInverse);
}

}  // namespace mnk
