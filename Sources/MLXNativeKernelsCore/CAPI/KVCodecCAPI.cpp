#include "CAPI/Handles.hpp"

#include "Support/Try.hpp"

using namespace mnk;

namespace {

Result<QuantizedCacheExtents> extentsFrom(const mnk_quantized_cache_extents* extents) {
  MNK_TRY(auto given, c::descriptor("mnk_quantized_cache_extents", extents));
  MNK_TRY(auto keys, c::codec(given.keys));
  QuantizedCacheExtents cache{.keys = keys,
                              .headDim = given.head_dim,
                              .valueHeadDim = given.value_head_dim == 0 ? given.head_dim : given.value_head_dim,
                              .heads = given.heads,
                              .capacity = given.capacity,
                              .sequences = given.sequences == 0 ? 1 : given.sequences};
  if (given.has_values) {
    MNK_TRY(auto values, given.values.bits == 0 ? keys : c::codec(given.values));
    cache.values = values;
  }
  return cache;
}

}  // namespace

namespace mnk::c {

Result<KVCodec> codec(const mnk_kv_codec& given) {
  MNK_TRY(auto name, codecName(given.name));
  return KVCodec{.name = name, .bits = given.bits, .scaleFactor = given.scale_factor == 0 ? 1 : given.scale_factor};
}

Result<KVQuantizeOptions> quantizeOptions(const mnk_kv_quantize_options& given) {
  KVQuantizeOptions options;
  if (given.candidates != 0) options.candidates = given.candidates;
  MNK_TRY(auto keyScale, scaleRule(given.key_scale, options.keyScale));
  MNK_TRY(auto valueScale, scaleRule(given.value_scale, options.valueScale));
  MNK_TRY(auto treatment, nonFinite(given.non_finite));
  options.keyScale = keyScale;
  options.valueScale = valueScale;
  options.nonFinite = treatment;
  return options;
}

}  // namespace mnk::c

bool mnk_kv_codec_get_sizes(const mnk_kv_codec* codec, uint64_t head_dim, mnk_kv_codec_sizes* out,
                            mnk_error_out error) {
  return c::run(error, {{codec, "codec"}, {out, "sizes"}}, [&]() -> Result<void> {
    MNK_TRY(auto given, c::codec(*codec));
    MNK_TRY(auto found, sizes(given, head_dim));
    *out = {.code_bytes = found.codeBytes, .scales = found.scales, .scale_bytes = found.scaleBytes};
    return {};
  });
}

bool mnk_quantized_cache_get_bytes(const mnk_quantized_cache_extents* extents, uint64_t* bytes, mnk_error_out error) {
  return c::run(error, {{bytes, "bytes"}}, [&]() -> Result<void> {
    MNK_TRY(auto given, extentsFrom(extents));
    MNK_TRY(auto counted, quantizedCacheBytes(given));
    *bytes = counted;
    return {};
  });
}
