#include "CAPI/Handles.hpp"

using namespace mnk;

namespace {

Result<QuantizedCacheExtents> extentsFrom(const mnk_quantized_cache_extents* extents) {
  auto given = c::descriptor("mnk_quantized_cache_extents", extents);
  if (!given) return std::move(given).error();
  auto keys = c::codec(given->keys);
  if (!keys) return std::move(keys).error();
  QuantizedCacheExtents cache{.keys = *keys,
                              .headDim = given->head_dim,
                              .valueHeadDim = given->value_head_dim == 0 ? given->head_dim : given->value_head_dim,
                              .heads = given->heads,
                              .capacity = given->capacity,
                              .sequences = given->sequences == 0 ? 1 : given->sequences};
  if (given->has_values) {
    auto values = given->values.bits == 0 ? keys : c::codec(given->values);
    if (!values) return std::move(values).error();
    cache.values = *values;
  }
  return cache;
}

}  // namespace

namespace mnk::c {

Result<KVCodec> codec(const mnk_kv_codec& given) {
  auto name = codecName(given.name);
  if (!name) return std::move(name).error();
  return KVCodec{.name = *name, .bits = given.bits, .scaleFactor = given.scale_factor == 0 ? 1 : given.scale_factor};
}

Result<KVQuantizeOptions> quantizeOptions(const mnk_kv_quantize_options& given) {
  KVQuantizeOptions options;
  if (given.candidates != 0) options.candidates = given.candidates;
  auto keyScale = scaleRule(given.key_scale, options.keyScale);
  if (!keyScale) return std::move(keyScale).error();
  auto valueScale = scaleRule(given.value_scale, options.valueScale);
  if (!valueScale) return std::move(valueScale).error();
  auto treatment = nonFinite(given.non_finite);
  if (!treatment) return std::move(treatment).error();
  options.keyScale = *keyScale;
  options.valueScale = *valueScale;
  options.nonFinite = *treatment;
  return options;
}

}  // namespace mnk::c

bool mnk_kv_codec_get_sizes(const mnk_kv_codec* codec, uint64_t head_dim, mnk_kv_codec_sizes* out,
                            mnk_error_out error) {
  return c::run(error, {{codec, "codec"}, {out, "sizes"}}, [&]() -> Result<void> {
    auto given = c::codec(*codec);
    if (!given) return std::move(given).error();
    auto found = sizes(*given, head_dim);
    if (!found) return std::move(found).error();
    *out = {.code_bytes = found->codeBytes, .scales = found->scales, .scale_bytes = found->scaleBytes};
    return {};
  });
}

bool mnk_quantized_cache_get_bytes(const mnk_quantized_cache_extents* extents, uint64_t* bytes, mnk_error_out error) {
  return c::run(error, {{bytes, "bytes"}}, [&]() -> Result<void> {
    auto given = extentsFrom(extents);
    if (!given) return std::move(given).error();
    auto counted = quantizedCacheBytes(*given);
    if (!counted) return std::move(counted).error();
    *bytes = *counted;
    return {};
  });
}
