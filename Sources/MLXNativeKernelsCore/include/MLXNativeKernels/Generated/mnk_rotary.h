// Generated from Sources/API by generate.py: change the description instead.
// How positions rotate queries and keys.
#ifndef MNK_ROTARY_H
#define MNK_ROTARY_H

#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

// Which elements make a pair, and which axis of positions rotates it. The numbers are those of ggml's rope types, which
// mlx-native calls modes.
typedef enum MNK_CLOSED(mnk_rotary_embedding_layout) {
  // Elements 2p and 2p + 1.
  MNK_ROTARY_EMBEDDING_LAYOUT_INTERLEAVED_PAIRS = 0,
  // Elements p and p + half. All layouts that follow do the same unless the pairing says otherwise.
  MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT = 2,
  // The given number of pairs of each axis, one axis after another, and again from the first in rounds of their sum.
  // Pairs beyond the rotated part are not used, as in ggml: check that the sum is half the rotated part.
  MNK_ROTARY_EMBEDDING_LAYOUT_MROPE = 8,
  // The given number of pairs of y (axis 0), then of x (axis 1). Each axis counts its pairs q from 0 and rotates them
  // by `base^(-2q / (headDim / 2))`.
  MNK_ROTARY_EMBEDDING_LAYOUT_VISION = 24,
  // Axes take turns: p mod 3 is the axis while p is less than three times its section; other pairs go to
  // `mnk_rotary_embedding.other_axis`. The fourth number only lengthens a round.
  MNK_ROTARY_EMBEDDING_LAYOUT_IMROPE = 40,
} mnk_rotary_embedding_layout;

// The partner of an element, except with interleaved pairs, which have one of their own.
typedef enum MNK_CLOSED(mnk_rotary_embedding_pairing) {
  // Half of the rotated part away, as in MLX, ggml and transformers.
  MNK_ROTARY_EMBEDDING_PAIRING_HALF_OF_ROPE_DIM = 0,
  // Half of the head away, as in mlx-native. It differs where the rotated part is less than the head.
  MNK_ROTARY_EMBEDDING_PAIRING_HALF_OF_HEAD_DIM = 1,
  // The next one: 2p and 2p + 1. With sections this is what GLM-4V has.
  MNK_ROTARY_EMBEDDING_PAIRING_NEIGHBORS = 2,
} mnk_rotary_embedding_pairing;

// Where pairs of imrope outside of all sections go.
typedef enum MNK_CLOSED(mnk_rotary_embedding_other_axis) {
  // To axis 0, time, as in transformers, with whose code these models were published.
  MNK_ROTARY_EMBEDDING_OTHER_AXIS_AXIS0 = 0,
  // To axis 3, as in ggml and mlx-native. ggml's callers fill it with 0 for text: such pairs are then not rotated.
  MNK_ROTARY_EMBEDDING_OTHER_AXIS_AXIS3 = 1,
} mnk_rotary_embedding_other_axis;

// Scales pairs that make fewer than `beta_slow` turns in the original context, keeps those that make more than
// `beta_fast` turns, and blends between them. Multiplies the result by `attention_factor * (1 + 0.1 ln(1 / scale))`.
//
// The `factor` of a model's configuration is `1 / scale`: pass `mnk_rotary_embedding.scale` as well. What transformers
// calls `attention_factor` is all of the product above. The call fails if `beta_fast` is not greater than `beta_slow`,
// or if the scale is greater than 1. With an `extension_factor` of 0, neither is required; what remains is
// `attention_factor`, which is what LongRoPE has beside its `mnk_rotary_embedding.frequency_factors`.
typedef struct mnk_rotary_embedding_yarn {
  // Tokens of the context that the model was trained with.
  uint64_t original_context;
  // Share of the blend, from 0 to 1; 0 scales every pair and omits the logarithm. The other languages' default is 1.
  float extension_factor;
  // A factor of the result. The other languages' default is 1.
  float attention_factor;
  // The number of turns from which a pair is kept. The other languages' default is 32.
  float beta_fast;
  // The number of turns up to which a pair is scaled. The other languages' default is 1.
  float beta_slow;
  // Whether the pairs where the blend begins and ends are not rounded: `"truncate": false` of a configuration.
  bool keeps_fractions;
} mnk_rotary_embedding_yarn;

// How positions rotate the pairs of a vector.
//
// Pair p, with elements a and b, becomes
//
//     out[a] = m (x[a] cos t - x[b] sin t)      t = position[axis(p)] * frequency(p)
//     out[b] = m (x[a] sin t + x[b] cos t)      for p < rope_dim / 2; all others are kept
//
// with frequency(p) = scale * base^(-2p / rope_dim) / frequency_factors[p] and m = 1, or both as YaRN defines.
typedef struct mnk_rotary_embedding {
  // Which elements make a pair, and which axis rotates it. The other languages' default is
  // `MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT`.
  mnk_rotary_embedding_layout layout;
  // Up to four numbers of pairs, for mrope and imrope, and the first two for vision.
  uint32_t sections[4];
  // The base of the frequencies. The other languages' default is 10000.
  double base;
  // How many elements are rotated, at most 1024; 0 means all of a head.
  uint64_t rope_dim;
  // The partner of an element.
  mnk_rotary_embedding_pairing pairing;
  // Which axis rotates pairs of imrope outside of all sections.
  mnk_rotary_embedding_other_axis other_axis;
  // Multiplies positions: 0.25 for a context four times as long. With YaRN, at most 1. The other languages' default is
  // 1.
  double scale;
  // A divisor for each pair's frequency; with infinity, a pair is not rotated. Without any, nothing is divided.
  //
  // Llama 3's scaling comes as such factors. A model's own table of periods, as MLX takes it, is this with a base of 1.
  const float* MNK_NULLABLE frequency_factors;
  size_t frequency_factor_count;
  // Whether `yarn` is used. Otherwise, all of it must be 0.
  bool has_yarn;
  // Scales some pairs more than others.
  mnk_rotary_embedding_yarn yarn;
  // Whether to undo the rotation.
  bool is_inverse;
} mnk_rotary_embedding;

MNK_HEADER_END

#endif
