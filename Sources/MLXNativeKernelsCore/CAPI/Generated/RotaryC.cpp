// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "Support/Errors.hpp"

namespace mnk::c {

Result<void> read(RotaryEmbedding::Layout& into, mnk_rotary_embedding_layout from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_ROTARY_EMBEDDING_LAYOUT_INTERLEAVED_PAIRS:
      into = RotaryEmbedding::Layout::interleavedPairs;
      return {};
    case MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT:
      into = RotaryEmbedding::Layout::halfSplit;
      return {};
    case MNK_ROTARY_EMBEDDING_LAYOUT_MROPE:
      into = RotaryEmbedding::Layout::mrope;
      return {};
    case MNK_ROTARY_EMBEDDING_LAYOUT_VISION:
      into = RotaryEmbedding::Layout::vision;
      return {};
    case MNK_ROTARY_EMBEDDING_LAYOUT_IMROPE:
      into = RotaryEmbedding::Layout::imrope;
      return {};
  }
  return unknownNumber(
      "mnk_rotary_embedding_layout", from,
      "MNK_ROTARY_EMBEDDING_LAYOUT_INTERLEAVED_PAIRS, MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT, "
      "MNK_ROTARY_EMBEDDING_LAYOUT_MROPE, MNK_ROTARY_EMBEDDING_LAYOUT_VISION or MNK_ROTARY_EMBEDDING_LAYOUT_IMROPE");
}

Result<void> read(RotaryEmbedding::Pairing& into, mnk_rotary_embedding_pairing from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_ROTARY_EMBEDDING_PAIRING_HALF_OF_ROPE_DIM:
      into = RotaryEmbedding::Pairing::halfOfRopeDim;
      return {};
    case MNK_ROTARY_EMBEDDING_PAIRING_HALF_OF_HEAD_DIM:
      into = RotaryEmbedding::Pairing::halfOfHeadDim;
      return {};
    case MNK_ROTARY_EMBEDDING_PAIRING_NEIGHBORS:
      into = RotaryEmbedding::Pairing::neighbors;
      return {};
  }
  return unknownNumber("mnk_rotary_embedding_pairing", from,
                       "MNK_ROTARY_EMBEDDING_PAIRING_HALF_OF_ROPE_DIM to MNK_ROTARY_EMBEDDING_PAIRING_NEIGHBORS");
}

Result<void> read(RotaryEmbedding::OtherAxis& into, mnk_rotary_embedding_other_axis from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_ROTARY_EMBEDDING_OTHER_AXIS_AXIS0:
      into = RotaryEmbedding::OtherAxis::axis0;
      return {};
    case MNK_ROTARY_EMBEDDING_OTHER_AXIS_AXIS3:
      into = RotaryEmbedding::OtherAxis::axis3;
      return {};
  }
  return unknownNumber("mnk_rotary_embedding_other_axis", from,
                       "MNK_ROTARY_EMBEDDING_OTHER_AXIS_AXIS0 to MNK_ROTARY_EMBEDDING_OTHER_AXIS_AXIS3");
}

bool isFilled(const mnk_rotary_embedding_yarn& from) {
  return from.original_context != 0 || from.extension_factor != 0 || from.attention_factor != 0 ||
         from.beta_fast != 0 || from.beta_slow != 0 || from.keeps_fractions;
}

Result<void> read(RotaryEmbedding::YaRN& into, const mnk_rotary_embedding_yarn& from, const Field&) {
  into.originalContext = from.original_context;
  into.extensionFactor = from.extension_factor;
  into.attentionFactor = from.attention_factor;
  into.betaFast = from.beta_fast;
  into.betaSlow = from.beta_slow;
  into.roundsCorners = !from.keeps_fractions;
  return {};
}

bool isFilled(const mnk_rotary_embedding& from) {
  return from.layout != 0 || from.sections[0] != 0 || from.sections[1] != 0 || from.sections[2] != 0 ||
         from.sections[3] != 0 || from.base != 0 || from.rope_dim != 0 || from.pairing != 0 || from.other_axis != 0 ||
         from.scale != 0 || from.frequency_factors || from.frequency_factor_count != 0 || from.has_yarn ||
         isFilled(from.yarn) || from.is_inverse;
}

Result<void> read(RotaryEmbedding& into, const mnk_rotary_embedding& from, const Field& field) {
  MNK_TRY(read(into.layout, from.layout));
  std::copy(std::begin(from.sections), std::end(from.sections), into.sections.begin());
  into.base = from.base;
  into.ropeDim = from.rope_dim;
  MNK_TRY(read(into.pairing, from.pairing));
  MNK_TRY(read(into.otherAxis, from.other_axis));
  into.scale = from.scale;
  MNK_TRY(readList(into.frequencyFactors, from.frequency_factors, from.frequency_factor_count, 65536,
                   "mnk_rotary_embedding", {&field, "frequency_factors"}, "frequency_factor_count"));
  if (from.has_yarn) {
    MNK_TRY(read(into.yarn.emplace(), from.yarn, {&field, "yarn"}));
  } else if (isFilled(from.yarn)) {
    return ignored("mnk_rotary_embedding", Field{&field, "yarn"}.text(), "has_yarn");
  }
  into.isInverse = from.is_inverse;
  return {};
}

}  // namespace mnk::c
