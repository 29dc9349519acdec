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
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace mnk {

// The numbers are those of ggml's rope types, which mlx-native calls modes.
enum class RotaryLayout : uint32_t {
  interleavedPairs = 0,  // elements 2p and 2p + 1
  halfSplit = 2,         // elements p and p + half, as in all that follow unless `pairing` says otherwise
  mrope = 8,
  vision = 24,
  imrope = 40,
};

// The partner of an element. MLX, ggml and transformers split the rotated part, so that is the default; mlx-native
// splits the head, which differs where ropeDim < headDim. Neighbors (2p, 2p + 1) with sections is what GLM-4V has.
enum class RotaryPairing : uint32_t { halfOfRopeDim, halfOfHeadDim, neighbors };

// Where imrope's pairs outside of all sections go. transformers, with whose code these models were published, takes
// time (axis 0), so that is the default. ggml and mlx-native take axis 3, which ggml's callers fill with 0 for text:
// such pairs are then not rotated.
enum class RotaryOtherAxis : uint32_t { axis0, axis3 };

// Scales pairs that make fewer than betaSlow turns in the original context, keeps those that make more than betaFast
// turns, and blends between them:
//   frequency(p) = (scale (1 - k) + k) * base^(-2p / ropeDim) / frequencyFactors[p]
//   k = extensionFactor * (1 - clamp((p - low) / max(0.001, high - low), 0, 1))
//   low = max(0, floor(pair(betaFast))), high = min(ropeDim - 1, ceil(pair(betaSlow))), or both without rounding
//   pair(turns) = ropeDim ln(originalContext / (2 pi turns)) / (2 ln base)
//   m = attentionFactor * (1 + 0.1 ln(1 / scale)), or only attentionFactor if extensionFactor is 0
// as ggml does. A configuration's `factor` is 1 / scale. Its `attention_factor`, in transformers, is all of m and must
// be divided by 1 + 0.1 ln(1 / scale). The blend needs betaFast > betaSlow and a scale of at most 1, because swapped
// betas or `factor` itself as scale would silently give other frequencies. With an extensionFactor of 0, neither is
// required; what remains is the factor m, which is what LongRoPE has beside its frequency factors.
struct YaRN {
  uint64_t originalContext = 0;
  float extensionFactor = 1;  // share of the blend, from 0 to 1; 0 scales every pair and omits the logarithm
  float attentionFactor = 1;
  float betaFast = 32;  // greater than betaSlow
  float betaSlow = 1;
  bool roundsCorners = true;  // false is "truncate": false of a configuration, as GPT-OSS has it
};

struct RotaryEmbedding {
  RotaryLayout layout = RotaryLayout::halfSplit;
  std::array<uint32_t, 4> sections = {};  // in pairs; for mrope, imrope and the first two for vision
  double base = 10000;
  std::optional<uint64_t> ropeDim = {};  // how many elements are rotated; all by default
  RotaryPairing pairing = RotaryPairing::halfOfRopeDim;
  RotaryOtherAxis otherAxis = RotaryOtherAxis::axis0;
  double scale = 1;  // multiplies positions: 1 / 4 for a context four times as long; with a blend of YaRN, at most 1
  // A divisor for each pair; with infinity, a pair is not rotated. A model's own table of periods, as MLX takes it, is
  // this with base 1.
  std::vector<float> frequencyFactors = {};
  std::optional<YaRN> yarn = {};
  bool isInverse = false;  // undoes the rotation
};

}  // namespace mnk
