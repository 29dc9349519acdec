// What readers of structs share: the errors of fields, and lists.
#pragma once
#include <algorithm>

#include "CAPI/Handles.hpp"

namespace mnk::c {

// A field of a struct, or of one inside of another; the outermost is an argument. Errors join the names.
struct Field {
  const Field* outer;
  std::string_view name;

  std::string text() const { return outer ? outer->text() + "." + std::string(name) : std::string(name); }
};

inline Result<void> read(DType& into, mnk_dtype from) {
  MNK_TRY(into, dtype(from));
  return {};
}
inline Error nullArgument(const Field& field) {
  return nullArgument(field.text());
}
// `expected` are the constants of the enum.
Error unknownNumber(std::string_view type, uint32_t got, std::string_view expected);

// The errors for a field that is filled in although the flag, or the count, without which it is not read is not set.
Error ignored(std::string_view type, std::string_view field, std::string_view flag, std::string_view unset = "false");
Error uncounted(std::string_view type, std::string_view list, std::string_view count);

template <typename Number, typename From>
Result<void> readList(std::vector<Number>& into, const From* list, size_t count, size_t most, std::string_view type,
                      const Field& field, std::string_view countName) {
  if (!list && count != 0) return nullArgument(field);
  if (list && count == 0) return uncounted(type, field.text(), countName);
  if (count > most) return tooMany(type, field.text(), count, most, "Pass fewer.");
  if (list) into.assign(list, list + count);
  return {};
}

}  // namespace mnk::c
