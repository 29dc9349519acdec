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

FIELDS(KVCacheWrite::Rows, a, b)
FIELDS(KVCacheWrite, a, b, c, d, e, f, g, h, i, j)
FIELDS(KVCacheQuantize, a, b, c, d, e, f, g, h, i, j, k, l, m)
FIELDS(KVCacheDequantize, a, b, c, d, e, f, g)
FIELDS(Hadamard, a, b, c, d)
FIELDS(RotaryPositions::List, a, b)
FIELDS(MultiRoPE, a, b, c, d, e, f, g)
FIELDS(FlashDecode, a, b, c, d, e, f)
inline auto fieldsOf(RotaryPositions& of) {
  return std::tie(of.source);
}

FIELDS(mnk_row_indices, a, b, c)
FIELDS(mnk_kv_cache_write, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
FIELDS(mnk_kv_cache_quantize, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
FIELDS(mnk_kv_cache_dequantize, a, b, c, d, e, f, g)
FIELDS(mnk_hadamard, a, b, c, d, e)
FIELDS(mnk_rotary_numbers, a, b, c, d)
FIELDS(mnk_next_positions, a, b, c, d)
FIELDS(mnk_multi_rope, a, b, c, d, e, f, g, h, i)
FIELDS(mnk_flash_decode, a, b, c, d, e, f, g, h, i)

#undef FIELDS

template <typename Struct>
concept HasFields = requires(Struct& of) {
  fieldsOf(of);
};

}  // namespace mnk::fuzz
