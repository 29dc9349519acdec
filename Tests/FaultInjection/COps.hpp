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

  mnk_plan* plan(Op op, mnk_device* device, mnk_error_out error) const {
    switch (op) {
      case Op::write:
        return mnk_kv_cache_write_make_plan(&write, error);
      case Op::quantize:
        return mnk_kv_cache_quantize_make_plan(&quantize, error);
      case Op::dequantize:
        return mnk_kv_cache_dequantize_make_plan(&dequantize, error);
      case Op::hadamard:
        return mnk_hadamard_make_plan(&hadamard, error);
      case Op::attend:
        return mnk_flash_decode_make_plan(&attend, device, error);
      case Op::attendQuantized:
        return mnk_flash_decode_make_plan(&attendQuantized, device, error);
      case Op::attendPartials:
        return mnk_flash_decode_make_plan(&attendPartials, device, error);
      case Op::merge:
        return mnk_merge_partials_make_plan(&merge, error);
      case Op::rope:
        return mnk_multi_rope_make_plan(&rope, error);
      case Op::broken:
        return mnk_kv_cache_write_make_plan(&broken, error);
    }
    return nullptr;
  }
  bool encode(Op op, mnk_encoder* encoder, mnk_error_out error) const {
    switch (op) {
      case Op::write:
        return mnk_encoder_kv_cache_write(encoder, &write, error);
      case Op::quantize:
        return mnk_encoder_kv_cache_quantize(encoder, &quantize, error);
      case Op::dequantize:
        return mnk_encoder_kv_cache_dequantize(encoder, &dequantize, error);
      case Op::hadamard:
        return mnk_encoder_hadamard(encoder, &hadamard, error);
      case Op::attend:
        return mnk_encoder_flash_decode(encoder, &attend, error);
      case Op::attendQuantized:
        return mnk_encoder_flash_decode(encoder, &attendQuantized, error);
      case Op::attendPartials:
        return mnk_encoder_flash_decode(encoder, &attendPartials, error);
      case Op::merge:
        return mnk_encoder_merge_partials(encoder, &merge, error);
      case Op::rope:
        return mnk_encoder_multi_rope(encoder, &rope, error);
      case Op::broken:
        return mnk_encoder_kv_cache_write(encoder, &broken, error);
    }
    return false;
  }
};

}  // namespace mnk::inject
