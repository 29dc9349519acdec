// The fields of ops and of their structs in the C API, in their order and without their names: a field that is added is
// mutated like all others. A list that is too short or too long for its type does not compile.
#pragma once
#include <tuple>

#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "MLXNativeKernels/mnk.h"

namespace mnk::fuzz {

#define FIELDS(Type, ...)          \
  inline auto fieldsOf(Type& of) { \
    auto& [__VA_ARGS__] = of;      \
    return std::tie(__VA_ARGS__);  \
  }

#include "Generated/Fields.inc"

FIELDS(RotaryPositions::List, a, b)
inline auto fieldsOf(RotaryPositions& of) {
  return std::tie(of.source);
}

FIELDS(mnk_row_indices, a, b, c)
FIELDS(mnk_rotary_offsets, a, b, c)
FIELDS(mnk_rotary_positions, a, b, c, d, e, f, g, h, i, j)

#undef FIELDS

template <typename Struct>
concept HasFields = requires(Struct& of) {
  fieldsOf(of);
};

}  // namespace mnk::fuzz
