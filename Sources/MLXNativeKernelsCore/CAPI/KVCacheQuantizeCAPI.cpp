#include "CAPI/KVSource.hpp"
#include "CAPI/KVViews.hpp"
#include "Support/Try.hpp"

using namespace mnk;

namespace {

Result<KVCacheQuantize> quantizeFrom(const mnk_kv_cache_quantize* op) {
  MNK_TRY(auto given, c::descriptor("mnk_kv_cache_quantize", op));
  KVCacheQuantize quantize;
  MNK_TRY(c::readSource(given, quantize));
  MNK_TRY(auto into, c::quantizedView(given.into, "into"));
  quantize.into = into;
  MNK_TRY(c::readPlaces(given, quantize));
  MNK_TRY(auto options, c::quantizeOptions(given.options));
  quantize.options = options;
  if (given.counts) quantize.counts = given.counts->tensor;
  if (given.probe) quantize.probe = given.probe->tensor;
  return quantize;
}

Result<KVCacheDequantize> dequantizeFrom(const mnk_kv_cache_dequantize* op) {
  MNK_TRY(auto given, c::descriptor("mnk_kv_cache_dequantize", op));
  MNK_TRY(auto from, c::quantizedView(given.from, "from"));
  MNK_TRY(auto layout, c::layout(given.layout));
  MNK_TRY(auto domain, c::domain(given.domain));
  KVCacheDequantize dequantize{
      .from = from, .sequence = given.sequence, .position = given.position, .layout = layout, .domain = domain};
  if (given.keys) dequantize.keys = given.keys->tensor;
  if (given.values) dequantize.values = given.values->tensor;
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
