// Numbers that an op takes as a list or as a tensor: the places of rows, positions and offsets.
#pragma once
#include "CAPI/Fields.hpp"

namespace mnk::c {

Result<void> read(RowIndices& into, const mnk_row_indices& from, const Field& field);
bool isFilled(const mnk_row_indices& from);
// Zeros leave positions as they are.
Result<void> read(RotaryPositions& into, const mnk_rotary_positions& from, const Field& field);
bool isFilled(const mnk_rotary_positions& from);
Result<void> read(RotaryOffsets& into, const mnk_rotary_offsets& from, const Field& field);
bool isFilled(const mnk_rotary_offsets& from);

// C tells an empty list from none by the pointer.
template <typename Number>
const Number* listOf(const std::vector<Number>& numbers) {
  static constexpr Number kNothing = 0;
  return numbers.empty() ? &kNothing : numbers.data();
}

template <typename Struct, typename Number, typename Handles>
Struct writeNumbers(const std::variant<std::vector<Number>, Tensor>& from, Handles&& handleOf) {
  Struct into{};
  if (const auto* tensor = std::get_if<Tensor>(&from)) {
    into.tensor = handleOf(*tensor);
  } else {
    into.list = listOf(std::get<0>(from));
    into.list_count = std::get<0>(from).size();
  }
  return into;
}
template <typename Handles>
mnk_row_indices write(const RowIndices& from, Handles&& handleOf) {
  return writeNumbers<mnk_row_indices>(from, handleOf);
}
template <typename Handles>
mnk_rotary_offsets write(const RotaryOffsets& from, Handles&& handleOf) {
  return writeNumbers<mnk_rotary_offsets>(from, handleOf);
}
// Positions of a source become none.
template <typename Handles>
mnk_rotary_positions write(const RotaryPositions& from, Handles&& handleOf) {
  mnk_rotary_positions into{};
  if (const auto* first = std::get_if<int64_t>(&from.source)) into.has_first = true, into.first = *first;
  if (const auto* tensor = std::get_if<Tensor>(&from.source)) into.tensor = handleOf(*tensor);
  if (const auto* list = std::get_if<RotaryPositions::List>(&from.source)) {
    into.list = listOf(list->numbers), into.list_count = list->numbers.size(), into.list_axes = list->axes;
  }
  return into;
}

}  // namespace mnk::c
