#include "CAPI/Generated/Read.hpp"
#include "Support/Errors.hpp"

using namespace mnk;

namespace {

Result<QuantizedCacheExtents> extentsFrom(const mnk_quantized_cache_extents* extents) {
  MNK_TRY(auto input, c::descriptor("mnk_quantized_cache_extents", extents));
  QuantizedCacheExtents cache{.headDim = input.head_dim,
                              .valueHeadDim = input.value_head_dim == 0 ? input.head_dim : input.value_head_dim,
                              .heads = input.heads,
                              .capacity = input.capacity,
                              .sequences = input.sequences == 0 ? 1 : input.sequences};
  MNK_TRY(c::read(cache.keys, input.keys, {nullptr, "keys"}));
  for (const auto& [isFilled, name] :
       {std::pair(c::isFilled(input.values), "values"), std::pair(input.value_head_dim != 0, "value_head_dim")}) {
    if (isFilled && !input.has_values) return c::ignored("mnk_quantized_cache_extents", name, "has_values");
  }
  if (input.has_values) {
    cache.values = cache.keys;
    if (input.values.bits != 0) MNK_TRY(c::read(cache.values.emplace(), input.values, {nullptr, "values"}));
  }
  return cache;
}

}  // namespace

bool mnk_kv_codec_get_sizes(const mnk_kv_codec* codec, uint64_t head_dim, mnk_kv_codec_sizes* out,
                            mnk_error_out error) {
  return c::run(error, {{codec, "codec"}, {out, "sizes"}}, [&]() -> Result<void> {
    KVCodec input;
    MNK_TRY(c::read(input, *codec, {nullptr, "codec"}));
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
