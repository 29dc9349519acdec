// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Ops.hpp"
#include "Support/Errors.hpp"

namespace mnk::c {

bool isFilled(const mnk_kv_cache_write_rows& from) {
  return isFilled(from.sequences) || isFilled(from.positions);
}

Result<void> read(KVCacheWrite::Rows& into, const mnk_kv_cache_write_rows& from, const Field& field) {
  MNK_TRY(read(into.sequences, from.sequences, {&field, "sequences"}));
  MNK_TRY(read(into.positions, from.positions, {&field, "positions"}));
  return {};
}

Result<void> read(KVCacheWrite& into, const mnk_kv_cache_write& from, const Field& field) {
  MNK_TRY(read(into.keys, from.keys, {&field, "keys"}));
  if (isFilled(from.values)) MNK_TRY(read(into.values.emplace(), from.values, {&field, "values"}));
  MNK_TRY(read(into.sourceLayout, from.source_layout));
  into.sourceOffset = from.source_offset;
  if (from.has_tokens) {
    into.tokens = from.tokens;
  } else if (from.tokens != 0) {
    return ignored("KVCacheWrite", Field{&field, "tokens"}.text(), "has_tokens");
  }
  into.sourceIsRing = from.source_is_ring;
  MNK_TRY(read(into.into, from.into, {&field, "into"}));
  into.sequence = from.sequence;
  into.position = from.position;
  if (from.has_rows) {
    MNK_TRY(read(into.rows.emplace(), from.rows, {&field, "rows"}));
  } else if (isFilled(from.rows)) {
    return ignored("KVCacheWrite", Field{&field, "rows"}.text(), "has_rows");
  }
  return {};
}

}  // namespace mnk::c

using namespace mnk;

mnk_plan* mnk_kv_cache_write_make_plan(const mnk_kv_cache_write* op, mnk_error_out error) {
  return c::makePlan<KVCacheWrite>(op, error);
}

bool mnk_encoder_kv_cache_write(mnk_encoder* encoder, const mnk_kv_cache_write* op, mnk_error_out error) {
  return c::encode<KVCacheWrite>(encoder, op, error);
}
