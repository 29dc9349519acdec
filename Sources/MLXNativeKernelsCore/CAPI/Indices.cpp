#include "CAPI/Indices.hpp"

#include "Support/Errors.hpp"

namespace mnk::c {

namespace {

// A list, which is one even if it is empty, or a tensor.
template <typename Number>
Result<void> readNumbers(std::variant<std::vector<Number>, Tensor>& into, const Number* list, size_t count,
                         const mnk_tensor* tensor, std::string_view type, const Field& field) {
  if ((list || count != 0) && tensor) return twice(type, field, "a list and a tensor");
  if (tensor) {
    into = tensor->tensor;
    return {};
  }
  if (!list && count != 0) return nullArgument({&field, "list"});
  if (count > KVCacheWrite::kMaxRows) return tooMany(type, field.text(), count, KVCacheWrite::kMaxRows);
  into = std::vector<Number>(list, list + count);
  return {};
}

Result<RotaryPositions> nextPositions(const mnk_rotary_positions& from, const Field& field) {
  if (!from.sequences && from.sequence_count != 0) return nullArgument({&field, "sequences"});
  // A listed sequence without rows has a row count.
  const uint64_t most =
      from.row_counts ? from.cache->cache.descriptor().sequences + MultiRoPE::kMaxListed : MultiRoPE::kMaxListed;
  if (from.sequence_count > most) {
    return tooMany(field.opOr(MultiRoPE::name), Field{&field, "sequences"}.text(), from.sequence_count, most,
                   "Pass fewer.");
  }
  const size_t count = from.sequences ? from.sequence_count : 1;
  std::vector<uint32_t> sequences = {kOnlySequence};
  std::optional<std::vector<uint32_t>> rowCounts;
  if (from.sequences) sequences.assign(from.sequences, from.sequences + count);
  if (from.row_counts) rowCounts.emplace(from.row_counts, from.row_counts + count);
  return from.cache->cache.nextPositions(std::move(sequences), std::move(rowCounts));
}

}  // namespace

Result<void> read(RowIndices& into, const mnk_row_indices& from, const Field& field) {
  return readNumbers(into, from.list, from.list_count, from.tensor, field.opOr(KVCacheWrite::name), field);
}

bool isFilled(const mnk_row_indices& from) {
  return from.list || from.list_count != 0 || from.tensor;
}

Result<void> read(RotaryOffsets& into, const mnk_rotary_offsets& from, const Field& field) {
  return readNumbers(into, from.list, from.list_count, from.tensor, field.opOr(MultiRoPE::name), field);
}

bool isFilled(const mnk_rotary_offsets& from) {
  return from.list || from.list_count != 0 || from.tensor;
}

Result<void> read(RotaryPositions& into, const mnk_rotary_positions& from, const Field& field) {
  const std::string_view type = field.opOr(MultiRoPE::name);
  const bool hasList = from.list || from.list_count != 0 || from.list_axes != 0;
  const bool isNext = from.cache || from.sequences || from.row_counts || from.sequence_count != 0;
  if (int(from.has_first) + int(hasList) + int(from.tensor != nullptr) + int(isNext) > 1) {
    return twice(type, field, "several of a first position, a list, a tensor and a cache");
  }
  if (from.first != 0 && !from.has_first) return ignored(type, Field{&field, "first"}.text(), "has_first");
  if (from.has_first) into = from.first;
  if (from.tensor) into = from.tensor->tensor;
  if (hasList) {
    if (!from.list) return nullArgument({&field, "list"});
    if (from.list_count > MultiRoPE::kMaxListed)
      return tooMany(type, field.text(), from.list_count, MultiRoPE::kMaxListed);
    into = {std::vector<int32_t>(from.list, from.list + from.list_count), std::max(1u, from.list_axes)};
  }
  if (isNext) {
    if (!from.cache) return nullArgument({&field, "cache"});
    MNK_TRY(into, nextPositions(from, field));
  }
  return {};
}

bool isFilled(const mnk_rotary_positions& from) {
  return from.has_first || from.first != 0 || from.list || from.list_count != 0 || from.list_axes != 0 || from.tensor ||
         from.cache || from.sequences || from.row_counts || from.sequence_count != 0;
}

}  // namespace mnk::c
