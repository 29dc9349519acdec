#include "CAPI/KVSource.hpp"
#include "Support/Try.hpp"

using namespace mnk;

namespace {

Result<KVCacheQuantize> quantizeFrom(const mnk_kv_cache_quantize* op) {
  MNK_TRY(auto input, c::descriptor("mnk_kv_cache_quantize", op));
  KVCacheQuantize quantize;
  MNK_TRY(c::readSource(input, quantize));
  MNK_TRY(c::read(quantize.into, input.into, {nullptr, "into"}));
  MNK_TRY(c::readPlaces(input, quantize));
  MNK_TRY(c::read(quantize.options, input.options, {nullptr, "options"}));
  if (input.counts) quantize.counts = input.counts->tensor;
  if (input.probe) quantize.probe = input.probe->tensor;
  return quantize;
}

Result<KVCacheDequantize> dequantizeFrom(const mnk_kv_cache_dequantize* op) {
  MNK_TRY(auto input, c::descriptor("mnk_kv_cache_dequantize", op));
  KVCacheDequantize dequantize{.sequence = input.sequence, .position = input.position};
  MNK_TRY(c::read(dequantize.from, input.from, {nullptr, "from"}));
  MNK_TRY(c::read(dequantize.layout, input.layout));
  MNK_TRY(c::read(dequantize.domain, input.domain));
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
