#include "CAPI/KVSource.hpp"

using namespace mnk;

namespace {

// Keys or values, or nothing where they are left out. `name` says which, as in "into.keys".
Result<std::optional<QuantizedKVPlane>> planeFrom(const mnk_quantized_kv_plane& given, const std::string& name) {
  const bool hasOthers = given.scales || given.means || given.channel_scales;
  if (!given.codes && !hasOthers) return std::optional<QuantizedKVPlane>();
  if (!given.codes) return c::nullArgument(name + ".codes");
  if (!given.scales) return c::nullArgument(name + ".scales");
  auto codec = c::codec(given.codec);
  if (!codec) return std::move(codec).error();
  QuantizedKVPlane plane{.codec = *codec, .codes = given.codes->tensor, .scales = given.scales->tensor};
  if (given.means) plane.means = given.means->tensor;
  if (given.channel_scales) plane.channelScales = given.channel_scales->tensor;
  return std::optional(plane);
}

Result<QuantizedKVCacheView> viewFrom(const mnk_quantized_kv_view& given, const std::string& name) {
  // Inside another struct a longer view would have moved all that follows it.
  if (given.size != sizeof given) return c::wrongSize("mnk_quantized_kv_view", given.size, sizeof given);
  auto keys = planeFrom(given.keys, name + ".keys");
  if (!keys) return std::move(keys).error();
  if (!*keys) return c::nullArgument(name + ".keys.codes");
  auto values = planeFrom(given.values, name + ".values");
  if (!values) return std::move(values).error();
  auto layout = c::layout(given.layout);
  if (!layout) return std::move(layout).error();
  auto wrap = c::wrap(given.wrap);
  if (!wrap) return std::move(wrap).error();
  return QuantizedKVCacheView{
      .keys = **keys, .values = *values, .layout = *layout, .wrap = *wrap, .pinned = given.pinned};
}

Result<KVCacheQuantize> quantizeFrom(const mnk_kv_cache_quantize* op) {
  auto given = c::descriptor("mnk_kv_cache_quantize", op);
  if (!given) return std::move(given).error();
  KVCacheQuantize quantize;
  if (auto source = c::readSource(*given, quantize); !source) return std::move(source).error();
  auto into = viewFrom(given->into, "into");
  if (!into) return std::move(into).error();
  quantize.into = *into;
  if (auto places = c::readPlaces(*given, quantize); !places) return std::move(places).error();
  auto options = c::quantizeOptions(given->options);
  if (!options) return std::move(options).error();
  quantize.options = *options;
  if (given->counts) quantize.counts = given->counts->tensor;
  if (given->probe) quantize.probe = given->probe->tensor;
  return quantize;
}

Result<KVCacheDequantize> dequantizeFrom(const mnk_kv_cache_dequantize* op) {
  auto given = c::descriptor("mnk_kv_cache_dequantize", op);
  if (!given) return std::move(given).error();
  auto from = viewFrom(given->from, "from");
  if (!from) return std::move(from).error();
  auto layout = c::layout(given->layout);
  if (!layout) return std::move(layout).error();
  auto domain = c::domain(given->domain);
  if (!domain) return std::move(domain).error();
  KVCacheDequantize dequantize{
      .from = *from, .sequence = given->sequence, .position = given->position, .layout = *layout, .domain = *domain};
  if (given->keys) dequantize.keys = given->keys->tensor;
  if (given->values) dequantize.values = given->values->tensor;
  return dequantize;
}

}  // namespace

mnk_plan* mnk_kv_cache_quantize_make_plan(const mnk_kv_cache_quantize* op, mnk_error_out error) {
  return c::make<mnk_plan>(error, {}, [&] { return c::planFor(quantizeFrom(op)); });
}

bool mnk_encoder_kv_cache_quantize(mnk_encoder* encoder, const mnk_kv_cache_quantize* op, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}}, [&] { return c::encode(*encoder, quantizeFrom(op)); });
}

mnk_plan* mnk_kv_cache_dequantize_make_plan(const mnk_kv_cache_dequantize* op, mnk_error_out error) {
  return c::make<mnk_plan>(error, {}, [&] { return c::planFor(dequantizeFrom(op)); });
}

bool mnk_encoder_kv_cache_dequantize(mnk_encoder* encoder, const mnk_kv_cache_dequantize* op, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}}, [&] { return c::encode(*encoder, dequantizeFrom(op)); });
}
