// The C descriptors of all ops, over the same tensors.
#pragma once
#include "MLXNativeKernels/mnk.h"
#include "Session.hpp"

namespace mnk::inject {

inline mnk_heads_view viewOf(mnk_tensor* tensor) {
  return {.size = sizeof(mnk_heads_view), .tensor = tensor, .layout = MNK_TOKEN_MAJOR};
}

struct COps {
  using Tensors = std::array<mnk_tensor*, kNames>;

  mnk_kv_cache_view dense;
  mnk_quantized_kv_view quantized;
  mnk_kv_cache_write write;
  mnk_kv_cache_write broken;
  mnk_kv_cache_quantize quantize;
  mnk_kv_cache_dequantize dequantize;
  mnk_hadamard hadamard;
  mnk_attention_results into, intoQuantized, partials, merged;
  mnk_attended_sequence sequence{.sequence = 0, .length = kTokens};
  mnk_flash_decode attend, attendQuantized, attendPartials;
  mnk_merge_partials merge;
  mnk_multi_rope rope;

  explicit COps(const Tensors& t)
      : dense{.size = sizeof dense, .keys = t[kDenseKeys], .values = t[kDenseValues]},
        quantized{.size = sizeof quantized,
                  .keys = {.codec = {MNK_TURBO, 4, 0}, .codes = t[kKeyCodes], .scales = t[kKeyScales]},
                  .values = {.codec = {MNK_TURBO, 4, 0}, .codes = t[kValueCodes], .scales = t[kValueScales]}},
        write{.size = sizeof write,
              .keys = t[kKeys],
              .values = t[kValues],
              .source_layout = MNK_TOKEN_MAJOR,
              .into = dense},
        broken(write),
        quantize{.size = sizeof quantize,
                 .keys = t[kKeys],
                 .values = t[kValues],
                 .source_layout = MNK_TOKEN_MAJOR,
                 .into = quantized},
        dequantize{.size = sizeof dequantize,
                   .from = quantized,
                   .keys = t[kReadKeys],
                   .values = t[kReadValues],
                   .layout = MNK_TOKEN_MAJOR},
        hadamard{
            .size = sizeof hadamard, .from = t[kWrapped], .into = t[kTurned], .has_signs = true, .signs = MNK_TURBO},
        into{.size = sizeof into, .into = t[kAttended]},
        intoQuantized{.size = sizeof into, .into = t[kAttendedQuantized]},
        partials{.size = sizeof into, .partial_sums = t[kPartSums], .partial_stats = t[kPartStats]},
        merged{.size = sizeof into, .into = t[kMerged]},
        attend{.size = sizeof attend,
               .queries = t[kQueries],
               .dense = &dense,
               .sequences = &sequence,
               .sequence_count = 1,
               .results = &into},
        attendQuantized(attend),
        attendPartials(attend),
        merge{.size = sizeof merge,
              .partial_sums = t[kPartialSums],
              .partial_stats = t[kPartialStats],
              .results = &merged},
        rope{.size = sizeof rope,
             .queries = viewOf(t[kQueries]),
             .keys = viewOf(t[kKeys]),
             .rotated_queries = viewOf(t[kRotatedQueries]),
             .rotated_keys = viewOf(t[kRotatedKeys]),
             .first_position = 7,
             .rotary = {.size = sizeof(mnk_rotary_embedding), .layout = MNK_HALF_SPLIT, .base = 10000, .scale = 1}} {
    broken.position = kCapacity;
    attendQuantized.dense = nullptr;
    attendQuantized.quantized = &quantized;
    attendQuantized.results = &intoQuantized;
    attendPartials.results = &partials;
  }
  COps(const COps&) = delete;
  COps& operator=(const COps&) = delete;

  // Calls `body` with the descriptor of an op, and the functions that plan and encode it.
  template <typename Body>
  auto with(Op op, mnk_device* device, Body body) const {
    const auto planDecode = [device](const mnk_flash_decode* decode, mnk_error_out error) {
      return mnk_flash_decode_make_plan(decode, device, error);
    };
    switch (op) {
      case Op::write:
        return body(write, mnk_kv_cache_write_make_plan, mnk_encoder_kv_cache_write);
      case Op::quantize:
        return body(quantize, mnk_kv_cache_quantize_make_plan, mnk_encoder_kv_cache_quantize);
      case Op::dequantize:
        return body(dequantize, mnk_kv_cache_dequantize_make_plan, mnk_encoder_kv_cache_dequantize);
      case Op::hadamard:
        return body(hadamard, mnk_hadamard_make_plan, mnk_encoder_hadamard);
      case Op::attend:
        return body(attend, planDecode, mnk_encoder_flash_decode);
      case Op::attendQuantized:
        return body(attendQuantized, planDecode, mnk_encoder_flash_decode);
      case Op::attendPartials:
        return body(attendPartials, planDecode, mnk_encoder_flash_decode);
      case Op::merge:
        return body(merge, mnk_merge_partials_make_plan, mnk_encoder_merge_partials);
      case Op::rope:
        return body(rope, mnk_multi_rope_make_plan, mnk_encoder_multi_rope);
      case Op::broken:
        break;
    }
    return body(broken, mnk_kv_cache_write_make_plan, mnk_encoder_kv_cache_write);
  }
};

}  // namespace mnk::inject
