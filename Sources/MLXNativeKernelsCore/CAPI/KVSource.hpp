// What the descriptors of all ops that store tokens in a cache share: a source and the destination of its tokens.
#pragma once
#include "CAPI/Generated/Read.hpp"
#include "Support/Try.hpp"

namespace mnk::c {

inline Result<RowIndices> indicesFrom(std::string_view op, const mnk_row_indices& input) {
  if (input.tensor) return RowIndices(input.tensor->tensor);
  if (!input.list && input.list_count != 0) return nullArgument("the list of rows");
  if (input.list_count > KVCacheWrite::kMaxRows) {
    return tooMany(op, "rows", input.list_count, KVCacheWrite::kMaxRows, "Split the rows over several writes.");
  }
  return RowIndices(std::vector<uint32_t>(input.list, input.list + input.list_count));
}

// A view, with its own tensor and layout, or a tensor in the common source layout; empty if both are null.
inline Result<void> readSource(std::optional<HeadsView>& into, const mnk_heads_view* view, const mnk_tensor* tensor,
                               KVLayout layout, std::string_view name) {
  if (view) return read(into.emplace(), *view, {nullptr, name});
  if (tensor) into.emplace(tensor->tensor, layout);
  return {};
}

// Reads keys, values, and the range of tokens to store.
template <typename Input, typename Op>
Result<void> readSource(const Input& input, Op& op) {
  if (!input.keys && !input.keys_view) return nullArgument("keys");
  KVLayout layout = KVLayout::tokenMajor;
  MNK_TRY(read(layout, input.source_layout));
  std::optional<HeadsView> keys;
  MNK_TRY(readSource(keys, input.keys_view, input.keys, layout, "keys_view"));
  op.keys = std::move(*keys);
  MNK_TRY(readSource(op.values, input.values_view, input.values, layout, "values_view"));
  op.sourceOffset = input.source_offset;
  if (input.tokens != 0 && !input.has_tokens) return ignored(Op::name, "tokens", "has_tokens");
  if (input.has_tokens) op.tokens = input.tokens;
  op.sourceIsRing = input.source_is_ring;
  return {};
}

// Reads the sequence and position of the first token, or of each.
template <typename Input, typename Op>
Result<void> readPlaces(const Input& input, Op& op) {
  op.sequence = input.sequence;
  op.position = input.position;
  const std::pair<const mnk_row_indices*, std::string_view> rows[] = {{&input.sequences, "sequences"},
                                                                      {&input.positions, "positions"}};
  for (const auto& [indices, name] : rows) {
    const bool isFilled = indices->list || indices->list_count != 0 || indices->tensor;
    if (isFilled && !input.has_rows) return ignored(Op::name, name, "has_rows");
  }
  if (!input.has_rows) return {};
  MNK_TRY(auto sequences, indicesFrom(Op::name, input.sequences));
  MNK_TRY(auto positions, indicesFrom(Op::name, input.positions));
  op.rows = KVCacheWrite::Rows{sequences, positions};
  return {};
}

}  // namespace mnk::c
