// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Ops.hpp"
#include "Support/Errors.hpp"

namespace mnk::c {

Result<void> read(FlashDecode::Cache& into, const mnk_flash_decode_cache& from, const Field& field) {
  const bool given[] = {isFilled(from.dense), isFilled(from.quantized)};
  MNK_TRY(checkOneOf(given, "dense and quantized", field));
  if (given[0]) return read(into.emplace<0>(), from.dense, {&field, "dense"});
  if (given[1]) return read(into.emplace<1>(), from.quantized, {&field, "quantized"});
  return {};
}

Result<void> read(FlashDecode& into, const mnk_flash_decode& from, const Field& field) {
  MNK_TRY(read(into.queries, from.queries, {&field, "queries"}));
  MNK_TRY(read(into.cache, from.cache, {&field, "cache"}));
  MNK_TRY(readList(into.sequences, from.sequences, from.sequence_count, mostListed(into.queries), "FlashDecode",
                   {&field, "sequences"}, "sequence_count",
                   "Pass one for each sequence of the queries, or with a number of rows."));
  MNK_TRY(read(into.results, from.results, {&field, "results"}));
  MNK_TRY(read(into.options, from.options, {&field, "options"}));
  into.scratch = optional(from.scratch);
  return {};
}

Result<void> read(MergePartials& into, const mnk_merge_partials& from, const Field& field) {
  MNK_TRY(read(into.parts, from.parts, {&field, "parts"}));
  into.sinks = optional(from.sinks);
  MNK_TRY(read(into.results, from.results, {&field, "results"}));
  return {};
}

}  // namespace mnk::c

using namespace mnk;

mnk_plan* mnk_flash_decode_make_plan(const mnk_flash_decode* op, const mnk_device* device, mnk_error_out error) {
  return c::makePlan<FlashDecode>(op, device, error);
}

bool mnk_encoder_flash_decode(mnk_encoder* encoder, const mnk_flash_decode* op, mnk_error_out error) {
  return c::encode<FlashDecode>(encoder, op, error);
}

mnk_plan* mnk_merge_partials_make_plan(const mnk_merge_partials* op, mnk_error_out error) {
  return c::makePlan<MergePartials>(op, error);
}

bool mnk_encoder_merge_partials(mnk_encoder* encoder, const mnk_merge_partials* op, mnk_error_out error) {
  return c::encode<MergePartials>(encoder, op, error);
}
