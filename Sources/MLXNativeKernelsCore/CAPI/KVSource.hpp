// What the descriptors of all ops that store tokens in a cache have in common: a source, and where its tokens go.
#pragma once
#include "CAPI/Handles.hpp"

namespace mnk::c {

inline Result<RowIndices> indicesFrom(const mnk_row_indices& given) {
  if (given.tensor) return RowIndices(given.tensor->tensor);
  if (!given.list && given.list_count != 0) return nullArgument("the list of rows");
  if (given.list_count > KVCacheWrite::kMaxRows) return tooMany("rows", given.list_count, KVCacheWrite::kMaxRows);
  return RowIndices(std::vector<uint32_t>(given.list, given.list + given.list_count));
}

// Reads keys, values and which of their tokens are stored.
template <typename Given, typename Op>
Result<void> readSource(const Given& given, Op& op) {
  if (!given.keys) return nullArgument("keys");
  auto sourceLayout = layout(given.source_layout);
  if (!sourceLayout) return std::move(sourceLayout).error();
  op.keys = given.keys->tensor;
  if (given.values) op.values = given.values->tensor;
  op.sourceLayout = *sourceLayout;
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
  auto sequences = indicesFrom(given.sequences);
  if (!sequences) return std::move(sequences).error();
  auto positions = indicesFrom(given.positions);
  if (!positions) return std::move(positions).error();
  op.rows = KVCacheWrite::Rows{*sequences, *positions};
  return {};
}

}  // namespace mnk::c
