// Generated from Sources/API by generate.py: change the description instead.
// Every op, and its functions of C.
#pragma once
#include <tuple>
#include <utility>
#include <variant>

#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "MLXNativeKernels/mnk.h"

namespace mnk::test {

using AnyOp =
    std::variant<FlashDecode, MergePartials, KVCacheQuantize, KVCacheDequantize, Hadamard, KVCacheWrite, MultiRoPE>;

// In the order of AnyOp.
inline constexpr std::tuple kCFunctions{
    std::make_pair(mnk_flash_decode_make_plan, mnk_encoder_flash_decode),
    std::make_pair(mnk_merge_partials_make_plan, mnk_encoder_merge_partials),
    std::make_pair(mnk_kv_cache_quantize_make_plan, mnk_encoder_kv_cache_quantize),
    std::make_pair(mnk_kv_cache_dequantize_make_plan, mnk_encoder_kv_cache_dequantize),
    std::make_pair(mnk_hadamard_make_plan, mnk_encoder_hadamard),
    std::make_pair(mnk_kv_cache_write_make_plan, mnk_encoder_kv_cache_write),
    std::make_pair(mnk_multi_rope_make_plan, mnk_encoder_multi_rope)};

}  // namespace mnk::test
