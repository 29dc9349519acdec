// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "Support/Errors.hpp"

namespace mnk::c {

Result<void> read(KVCodec::Name& into, mnk_kv_codec_name from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_KV_CODEC_NAME_TURBO:
      into = KVCodec::Name::turbo;
      return {};
    case MNK_KV_CODEC_NAME_MLX1:
      into = KVCodec::Name::mlx1;
      return {};
    case MNK_KV_CODEC_NAME_MLX1_UNROTATED:
      into = KVCodec::Name::mlx1Unrotated;
      return {};
    case MNK_KV_CODEC_NAME_MLX1_AFFINE4:
      into = KVCodec::Name::mlx1Affine4;
      return {};
  }
  return unknownNumber("mnk_kv_codec_name", from, "MNK_KV_CODEC_NAME_TURBO to MNK_KV_CODEC_NAME_MLX1_AFFINE4");
}

bool isFilled(const mnk_kv_codec& from) {
  return from.name != 0 || from.bits != 0 || from.scale_factor != 0;
}

Result<void> read(KVCodec& into, const mnk_kv_codec& from, const Field&) {
  MNK_TRY(read(into.name, from.name));
  into.bits = from.bits;
  if (from.scale_factor != 0) into.scaleFactor = from.scale_factor;
  return {};
}

Result<void> read(KVScaleRule& into, mnk_kv_scale_rule from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_KV_SCALE_RULE_DEFAULT:
      return {};
    case MNK_KV_SCALE_RULE_UNBIASED:
      into = KVScaleRule::unbiased;
      return {};
    case MNK_KV_SCALE_RULE_LEAST_SQUARES:
      into = KVScaleRule::leastSquares;
      return {};
  }
  return unknownNumber("mnk_kv_scale_rule", from, "MNK_KV_SCALE_RULE_DEFAULT to MNK_KV_SCALE_RULE_LEAST_SQUARES");
}

Result<void> read(KVNonFinite& into, mnk_kv_non_finite from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_KV_NON_FINITE_PROPAGATE:
      into = KVNonFinite::propagate;
      return {};
    case MNK_KV_NON_FINITE_ZERO:
      into = KVNonFinite::zero;
      return {};
  }
  return unknownNumber("mnk_kv_non_finite", from, "MNK_KV_NON_FINITE_PROPAGATE to MNK_KV_NON_FINITE_ZERO");
}

Result<void> read(KVDomain& into, mnk_kv_domain from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_KV_DOMAIN_ORIGINAL:
      into = KVDomain::original;
      return {};
    case MNK_KV_DOMAIN_ROTATED:
      into = KVDomain::rotated;
      return {};
  }
  return unknownNumber("mnk_kv_domain", from, "MNK_KV_DOMAIN_ORIGINAL to MNK_KV_DOMAIN_ROTATED");
}

bool isFilled(const mnk_kv_quantize_options& from) {
  return from.candidates != 0 || from.key_scale != 0 || from.value_scale != 0 || from.non_finite != 0;
}

Result<void> read(KVQuantizeOptions& into, const mnk_kv_quantize_options& from, const Field&) {
  if (from.candidates != 0) into.candidates = from.candidates;
  MNK_TRY(read(into.keyScale, from.key_scale));
  MNK_TRY(read(into.valueScale, from.value_scale));
  MNK_TRY(read(into.nonFinite, from.non_finite));
  return {};
}

bool isFilled(const mnk_quantized_kv_plane& from) {
  return isFilled(from.codec) || from.codes || from.scales || from.means || from.channel_scales;
}

Result<void> read(QuantizedKVPlane& into, const mnk_quantized_kv_plane& from, const Field& field) {
  if (!from.codes) return nullArgument(Field{&field, "codes"});
  into.codes = from.codes->tensor;
  MNK_TRY(read(into.codec, from.codec, {&field, "codec"}));
  if (from.scales) into.scales = from.scales->tensor;
  into.means = optional(from.means);
  into.channelScales = optional(from.channel_scales);
  return {};
}

bool isFilled(const mnk_quantized_kv_cache_view& from) {
  return isFilled(from.keys) || isFilled(from.values) || from.layout != 0 || from.wrap != 0 || from.pinned != 0 ||
         from.latent_dim != 0;
}

Result<void> read(QuantizedKVCacheView& into, const mnk_quantized_kv_cache_view& from, const Field& field) {
  MNK_TRY(read(into.keys, from.keys, {&field, "keys"}));
  if (isFilled(from.values)) MNK_TRY(read(into.values.emplace(), from.values, {&field, "values"}));
  MNK_TRY(read(into.layout, from.layout));
  MNK_TRY(read(into.wrap, from.wrap));
  into.pinned = from.pinned;
  into.latentDim = from.latent_dim;
  return {};
}

}  // namespace mnk::c
