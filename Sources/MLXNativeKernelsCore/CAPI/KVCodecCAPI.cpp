#include "CAPI/Handles.hpp"

#include "Support/Try.hpp"

using namespace mnk;

namespace {

Result<QuantizedCacheExtents> extentsFrom(const mnk_quantized_cache_extents* extents) {
  MNK_TRY(auto input, c::descriptor("mnk_quantized_cache_extents", extents));
  MNK_TRY(auto keys, c::codec(input.keys));
  QuantizedCacheExtents cache{.keys = keys,
                              .headDim = input.head_dim,
                              .valueHeadDim = input.value_head_dim == 0 ? input.head_dim : input.value_head_dim,
                              .heads = input.heads,
                              .capacity = input.capacity,
                              .sequences = input.sequences == 0 ? 1 : input.sequences};
  const bool hasValueCodec = input.values.name != MNK_TURBO || input.values.bits != 0 || input.values.scale_factor != 0;
  for (const auto& [isFilled, name] :
       {std::pair(hasValueCodec, "values"), std::pair(input.value_head_dim != 0, "value_head_dim")}) {
    if (isFilled && !input.has_values) return c::ignored("mnk_quantized_cache_extents", name, "has_values");
  }
  if (input.has_values) {
    MNK_TRY(auto values, input.values.bits == 0 ? keys : c::codec(input.values));
    cache.values = values;
  }
  return cache;
}

}  // namespace

namespace mnk::c {

Result<KVCodec> codec(const mnk_kv_codec& input) {
  MNK_TRY(auto name, codecName(input.name));
  return KVCodec{.name = name, .bits = input.bits, .scaleFactor = input.scale_factor == 0 ? 1 : input.scale_factor};
}

Result<KVQuantizeOptions> quantizeOptions(const mnk_kv_quantize_options& input) {
  KVQuantizeOptions options;
  if (input.candidates != 0) options.candidates = input.candidates;
  MNK_TRY(auto keyScale, scaleRule(input.key_scale, options.keyScale));
  MNK_TRY(auto valueScale, scaleRule(input.value_scale, options.valueScale));
  MNK_TRY(auto treatment, nonFinite(input.non_finite));
  options.keyScale = keyScale;
  options.valueScale = valueScale;
  options.nonFinite = treatment;
  return options;
}

}  // namespace mnk::c

bool mnk_kv_codec_get_sizes(const mnk_kv_codec* codec, uint64_t head_dim, mnk_kv_codec_sizes* out,
                            mnk_error_out error) {
  return c::run(error, {{codec, "codec"}, {out, "sizes"}}, [&]() -> Result<void> {
    MNK_TRY(auto input, c::codec(*codec));
    MNK_TRY(auto found, sizes(input, head_dim));
    *out = {.code_bytes = found.codeBytes, .scales = found.scales, .scale_bytes = found.scaleBytes};
    return {};
  });
}

bool mnk_quantized_cache_get_byte_count(const mnk_quantized_cache_extents* extents, uint64_t* bytes,
                                        mnk_error_out error) {
  return c::run(error, {{bytes, "bytes"}}, [&]() -> Result<void> {
    MNK_TRY(auto input, extentsFrom(extents));
    MNK_TRY(auto counted, quantizedCacheBytes(input));
    *bytes = counted;
    return {};
  });
}
