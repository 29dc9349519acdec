// What the descriptors of all ops that store tokens in a cache share: a source and the destination of its tokens.
#pragma once
#include "CAPI/Handles.hpp"
#include "CAPI/HeadsViews.hpp"
#include "Support/Try.hpp"

namespace mnk::c {

inline Result<RowIndices> indicesFrom(std::string_view op, const mnk_row_indices& given) {
  if (given.tensor) return RowIndices(given.tensor->tensor);
  if (!given.list && given.list_count != 0) return nullArgument("the list of rows");
  if (given.list_count > KVCacheWrite::kMaxRows) return tooMany(op, "rows", given.list_count, KVCacheWrite::kMaxRows);
  return RowIndices(std::vector<uint32_t>(given.list, given.list + given.list_count));
}

// A view, with its own tensor and layout, or a tensor in the common source layout; empty if both are null.
inline Result<std::optional<HeadsView>> sourceFrom(const mnk_heads_view* view, const mnk_tensor* tensor,
                                                   KVLayout layout, std::string_view name) {
  if (!view) return tensor ? std::optional(HeadsView(tensor->tensor, layout)) : std::nullopt;
  if (!view->tensor) return nullArgument(name);
  return viewFrom(*view);
}

// Reads keys, values, and the range of tokens to store.
template <typename Given, typename Op>
Result<void> readSource(const Given& given, Op& op) {
  if (!given.keys && !given.keys_view) return nullArgument("keys");
  MNK_TRY(auto sourceLayout, layout(given.source_layout));
  MNK_TRY(auto keys, sourceFrom(given.keys_view, given.keys, sourceLayout, "keys_view->tensor"));
  MNK_TRY(auto values, sourceFrom(given.values_view, given.values, sourceLayout, "values_view->tensor"));
  op.keys = *keys;
  op.values = values;
  op.sourceOffset = given.source_offset;
  if (given.has_tokens) op.tokens = given.tokens;
  op.sourceIsRing = given.source_is_ring;
  return {};
}

// Reads the sequence and position of the first token, or of each.
template <typename Given, typename Op>
Result<void> readPlaces(const Given& given, Op& op) {
  op.sequence = given.sequence;
  op.position = given.position;
  if (!given.has_rows) return {};
  MNK_TRY(auto sequences, indicesFrom(Op::name, given.sequences));
  MNK_TRY(auto positions, indicesFrom(Op::name, given.positions));
  op.rows = KVCacheWrite::Rows{sequences, positions};
  return {};
}

}  // namespace mnk::c
