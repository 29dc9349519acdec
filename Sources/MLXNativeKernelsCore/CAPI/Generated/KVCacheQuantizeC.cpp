// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Ops.hpp"
#include "Support/Errors.hpp"

namespace mnk::c {

Result<void> read(KVCacheQuantize& into, const mnk_kv_cache_quantize& from, const Field& field) {
  MNK_TRY(read(into.keys, from.keys, {&field, "keys"}));
  if (isFilled(from.values)) MNK_TRY(read(into.values.emplace(), from.values, {&field, "values"}));
  MNK_TRY(read(into.sourceLayout, from.source_layout));
  into.sourceOffset = from.source_offset;
  if (from.has_tokens) {
    into.tokens = from.tokens;
  } else if (from.tokens != 0) {
    return ignored("KVCacheQuantize", Field{&field, "tokens"}.text(), "has_tokens");
  }
  into.sourceIsRing = from.source_is_ring;
  MNK_TRY(read(into.into, from.into, {&field, "into"}));
  into.sequence = from.sequence;
  into.position = from.position;
  if (from.has_rows) {
    MNK_TRY(read(into.rows.emplace(), from.rows, {&field, "rows"}));
  } else if (isFilled(from.rows)) {
    return ignored("KVCacheQuantize", Field{&field, "rows"}.text(), "has_rows");
  }
  MNK_TRY(read(into.options, from.options, {&field, "options"}));
  into.counts = optional(from.counts);
  into.probe = optional(from.probe);
  return {};
}

Result<void> read(KVCacheDequantize& into, const mnk_kv_cache_dequantize& from, const Field& field) {
  MNK_TRY(read(into.from, from.from, {&field, "from"}));
  into.sequence = from.sequence;
  into.position = from.position;
  into.keys = optional(from.keys);
  into.values = optional(from.values);
  MNK_TRY(read(into.layout, from.layout));
  MNK_TRY(read(into.domain, from.domain));
  return {};
}

Result<void> read(Hadamard& into, const mnk_hadamard& from, const Field& field) {
  if (!from.from) return nullArgument(Field{&field, "from"});
  into.from = from.from->tensor;
  into.into = optional(from.into);
  if (from.has_signs) {
    MNK_TRY(read(into.signs.emplace(), from.signs));
  } else if (from.signs != 0) {
    return ignored("Hadamard", Field{&field, "signs"}.text(), "has_signs");
  }
  into.isInverse = from.is_inverse;
  return {};
}

}  // namespace mnk::c

using namespace mnk;

mnk_plan* mnk_kv_cache_quantize_make_plan(const mnk_kv_cache_quantize* op, mnk_error_out error) {
  return c::makePlan<KVCacheQuantize>(op, error);
}

bool mnk_encoder_kv_cache_quantize(mnk_encoder* encoder, const mnk_kv_cache_quantize* op, mnk_error_out error) {
  return c::encode<KVCacheQuantize>(encoder, op, error);
}

mnk_plan* mnk_kv_cache_dequantize_make_plan(const mnk_kv_cache_dequantize* op, mnk_error_out error) {
  return c::makePlan<KVCacheDequantize>(op, error);
}

bool mnk_encoder_kv_cache_dequantize(mnk_encoder* encoder, const mnk_kv_cache_dequantize* op, mnk_error_out error) {
  return c::encode<KVCacheDequantize>(encoder, op, error);
}

mnk_plan* mnk_hadamard_make_plan(const mnk_hadamard* op, mnk_error_out error) {
  return c::makePlan<Hadamard>(op, error);
}

bool mnk_encoder_hadamard(mnk_encoder* encoder, const mnk_hadamard* op, mnk_error_out error) {
  return c::encode<Hadamard>(encoder, op, error);
}
