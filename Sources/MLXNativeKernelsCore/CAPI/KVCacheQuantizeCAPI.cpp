#include "CAPI/KVSource.hpp"
#include "CAPI/KVViews.hpp"

using namespace mnk;

namespace {

Result<KVCacheQuantize> quantizeFrom(const mnk_kv_cache_quantize* op) {
  auto given = c::descriptor("mnk_kv_cache_quantize", op);
  if (!given) return std::move(given).error();
  KVCacheQuantize quantize;
  if (auto source = c::readSource(*given, quantize); !source) return std::move(source).error();
  auto into = c::quantizedView(given->into, "into");
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
  auto from = c::quantizedView(given->from, "from");
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
