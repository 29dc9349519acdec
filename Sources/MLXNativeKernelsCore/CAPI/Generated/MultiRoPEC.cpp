// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Ops.hpp"
#include "Support/Errors.hpp"

namespace mnk::c {

bool isFilled(const mnk_rotary_step& from) {
  return isFilled(from.embedding) || isFilled(from.positions) || isFilled(from.offsets);
}

Result<void> read(RotaryStep& into, const mnk_rotary_step& from, const Field& field) {
  MNK_TRY(read(into.embedding, from.embedding, {&field, "embedding"}));
  if (isFilled(from.positions)) MNK_TRY(read(into.positions.emplace(), from.positions, {&field, "positions"}));
  if (isFilled(from.offsets)) MNK_TRY(read(into.offsets.emplace(), from.offsets, {&field, "offsets"}));
  return {};
}

Result<void> read(MultiRoPE& into, const mnk_multi_rope& from, const Field& field) {
  MNK_TRY(read(into.queries, from.queries, {&field, "queries"}));
  if (isFilled(from.keys)) MNK_TRY(read(into.keys.emplace(), from.keys, {&field, "keys"}));
  if (isFilled(from.rotated_queries))
    MNK_TRY(read(into.rotatedQueries.emplace(), from.rotated_queries, {&field, "rotated_queries"}));
  if (isFilled(from.rotated_keys))
    MNK_TRY(read(into.rotatedKeys.emplace(), from.rotated_keys, {&field, "rotated_keys"}));
  MNK_TRY(read(into.positions, from.positions, {&field, "positions"}));
  if (isFilled(from.offsets)) MNK_TRY(read(into.offsets.emplace(), from.offsets, {&field, "offsets"}));
  MNK_TRY(read(into.rotary, from.rotary, {&field, "rotary"}));
  return {};
}

}  // namespace mnk::c

using namespace mnk;

mnk_plan* mnk_multi_rope_make_plan(const mnk_multi_rope* op, mnk_error_out error) {
  return c::makePlan<MultiRoPE>(op, error);
}

bool mnk_encoder_multi_rope(mnk_encoder* encoder, const mnk_multi_rope* op, mnk_error_out error) {
  return c::encode<MultiRoPE>(encoder, op, error);
}
