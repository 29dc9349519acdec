#include "CAPI/Handles.hpp"

using namespace mnk;

namespace {

Result<KVCacheView> viewFrom(const mnk_kv_cache_view& given) {
  // Inside another struct a longer view would have moved all that follows it.
  if (given.size != sizeof given) return c::wrongSize("mnk_kv_cache_view", given.size, sizeof given);
  if (!given.keys) return c::nullArgument("into.keys");
  auto layout = c::layout(given.layout);
  if (!layout) return std::move(layout).error();
  auto wrap = c::wrap(given.wrap);
  if (!wrap) return std::move(wrap).error();
  KVCacheView view{.keys = given.keys->tensor, .layout = *layout, .wrap = *wrap, .pinned = given.pinned};
  if (given.values) view.values = given.values->tensor;
  return view;
}

Result<RowIndices> indicesFrom(const mnk_row_indices& given) {
  if (given.tensor) return RowIndices(given.tensor->tensor);
  if (!given.list && given.list_count != 0) return c::nullArgument("the list of rows");
  if (given.list_count > KVCacheWrite::kMaxRows) {
    return c::tooMany("rows", given.list_count, KVCacheWrite::kMaxRows);
  }
  return RowIndices(std::vector<uint32_t>(given.list, given.list + given.list_count));
}

Result<KVCacheWrite> writeFrom(const mnk_kv_cache_write* op) {
  auto given = c::descriptor("mnk_kv_cache_write", op);
  if (!given) return std::move(given).error();
  if (!given->keys) return c::nullArgument("keys");
  auto layout = c::layout(given->source_layout);
  if (!layout) return std::move(layout).error();
  auto into = viewFrom(given->into);
  if (!into) return std::move(into).error();

  KVCacheWrite write{.keys = given->keys->tensor,
                     .sourceLayout = *layout,
                     .sourceOffset = given->source_offset,
                     .sourceIsRing = given->source_is_ring,
                     .into = *into,
                     .sequence = given->sequence,
                     .position = given->position};
  if (given->values) write.values = given->values->tensor;
  if (given->has_tokens) write.tokens = given->tokens;
  if (given->has_rows) {
    auto sequences = indicesFrom(given->sequences);
    if (!sequences) return std::move(sequences).error();
    auto positions = indicesFrom(given->positions);
    if (!positions) return std::move(positions).error();
    write.rows = KVCacheWrite::Rows{*sequences, *positions};
  }
  return write;
}

}  // namespace

mnk_plan* mnk_kv_cache_write_make_plan(const mnk_kv_cache_write* op, mnk_error_out error) {
  return c::make<mnk_plan>(error, {}, [&] { return c::planFor(writeFrom(op)); });
}

bool mnk_encoder_kv_cache_write(mnk_encoder* encoder, const mnk_kv_cache_write* op, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}}, [&] { return c::encode(*encoder, writeFrom(op)); });
}
