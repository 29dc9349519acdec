#include "CAPI/KVSource.hpp"
#include "CAPI/KVViews.hpp"
#include "Support/Try.hpp"

using namespace mnk;

namespace {

Result<KVCacheQuantize> quantizeFrom(const mnk_kv_cache_quantize* op) {
  MNK_TRY(auto input, c::descriptor("mnk_kv_cache_quantize", op));
  KVCacheQuantize quantize;
  MNK_TRY(c::readSource(input, quantize));
  MNK_TRY(auto into, c::quantizedView(input.into, "into"));
  quantize.into = into;
  MNK_TRY(c::readPlaces(input, quantize));
  MNK_TRY(auto options, c::quantizeOptions(input.options));
  quantize.options = options;
  if (input.counts) quantize.counts = input.counts->tensor;
  if (input.probe) quantize.probe = input.probe->tensor;
  return quantize;
}

Result<KVCacheDequantize> dequantizeFrom(const mnk_kv_cache_dequantize* op) {
  MNK_TRY(auto input, c::descriptor("mnk_kv_cache_dequantize", op));
  MNK_TRY(auto from, c::quantizedView(input.from, "from"));
  MNK_TRY(auto layout, c::layout(input.layout, KVLayout::tokenMajor));
  MNK_TRY(auto domain, c::domain(input.domain));
  KVCacheDequantize dequantize{
      .from = from, .sequence = input.sequence, .position = input.position, .layout = layout, .domain = domain};
  if (input.keys) dequantize.keys = input.keys->tensor;
  if (input.values) dequantize.values = input.values->tensor;
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
