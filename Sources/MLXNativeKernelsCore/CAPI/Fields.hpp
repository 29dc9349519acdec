// What readers of structs share: the errors of fields, and lists.
#pragma once
#include <algorithm>
#include <span>

#include "CAPI/Handles.hpp"

namespace mnk::c {

// A field of a struct, or of one inside of another; the outermost is an argument, or an op, which has no name. Errors
// join the names.
struct Field {
  const Field* outer = nullptr;
  std::string_view name = {};
  std::string_view op = {};  // of the outermost

  // What errors name: the op, or another thing that is read.
  std::string_view opOr(std::string_view other) const { return outer ? outer->opOr(other) : (op.empty() ? other : op); }

  std::string text() const {
    const std::string before = outer ? outer->text() : std::string();
    return (before.empty() ? before : before + ".") + std::string(name);
  }
};

inline Error nullArgument(const Field& field) {
  return nullArgument(field.text());
}
// `expected` are the constants of the enum.
Error unknownNumber(std::string_view type, uint32_t got, std::string_view expected);

// The errors for a field that is filled in although the flag, or the count, without which it is not read is not set.
Error ignored(std::string_view type, std::string_view field, std::string_view flag, std::string_view unset = "false");
Error uncounted(std::string_view type, std::string_view list, std::string_view count);
// The error for a value that can be given in several ways and is given in more than one.
Error twice(std::string_view type, const Field& field, std::string_view got);
// Whether one of several structs is filled in; `names` are those of their fields.
Result<void> checkOneOf(std::span<const bool> given, std::string_view names, const Field& field);
// The most entries that a list of sequences can have: sequences with row counts share the rows of one sequence.
uint64_t mostListed(const HeadsView& queries);

template <typename Element, typename From>
Result<void> readList(std::vector<Element>& into, const From* list, size_t count, size_t most, std::string_view type,
                      const Field& field, std::string_view countName, std::string_view fix = "Pass fewer.") {
  if (!list && count != 0) return nullArgument(field);
  if (list && count == 0) return uncounted(type, field.text(), countName);
  if (count > most) return tooMany(type, field.text(), count, most, fix);
  if constexpr (std::is_arithmetic_v<Element>) {
    into.assign(list, list + count);
  } else {
    for (size_t i = 0; i < count; ++i) MNK_TRY(read(into.emplace_back(), list[i], field));
  }
  return {};
}

}  // namespace mnk::c
