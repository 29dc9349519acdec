// The C API to attention over caches in caller-owned memory: FlashDecode, and MergePartials for keys that were
// attended to in parts. The headers of these names define them. mnk_attention_cache.h attends over caches that keep
// their own memory.
#ifndef MNK_FLASH_DECODE_H
#define MNK_FLASH_DECODE_H

#include "MLXNativeKernels/Generated/mnk_attention_options.h"
#include "MLXNativeKernels/mnk_core.h"
#include "MLXNativeKernels/mnk_kv_cache.h"
#include "MLXNativeKernels/mnk_kv_quantize.h"

MNK_HEADER_BEGIN

typedef struct mnk_flash_decode {
  // f32, f16 or bf16 [heads, headDim], [rows, heads, headDim] or [sequences, rows, heads, headDim]; or queries_view
  mnk_tensor* MNK_NULLABLE queries;
  const mnk_kv_cache_view* MNK_NULLABLE dense;  // one of these two
  const mnk_quantized_kv_cache_view* MNK_NULLABLE quantized;
  const mnk_attended_sequence* MNK_NULLABLE sequences;  // one for each sequence of the queries, or with row counts
  size_t sequence_count;
  const mnk_attention_results* results;
  const mnk_attention_options* MNK_NULLABLE options;  // NULL: the defaults
  mnk_tensor* MNK_NULLABLE scratch;                   // u8, of the plan's scratch bytes; NULL: the device provides it
  const mnk_heads_view* MNK_NULLABLE queries_view;    // replaces queries; its tokens are rows
} mnk_flash_decode;

// Checks every rule and returns what would run on a device, or on an unknown GPU, without running it.
mnk_plan* MNK_NULLABLE mnk_flash_decode_make_plan(const mnk_flash_decode* op, const mnk_device* MNK_NULLABLE device,
                                                  mnk_error_out error);
bool mnk_encoder_flash_decode(mnk_encoder* encoder, const mnk_flash_decode* op, mnk_error_out error);

typedef struct mnk_merge_partials {
  mnk_attention_partials partials;  // with an axis of parts before those that mnk_flash_decode writes
  mnk_tensor* MNK_NULLABLE sinks;   // f32 [heads]; not if results are partials again
  const mnk_attention_results* results;
} mnk_merge_partials;

mnk_plan* MNK_NULLABLE mnk_merge_partials_make_plan(const mnk_merge_partials* op, mnk_error_out error);
bool mnk_encoder_merge_partials(mnk_encoder* encoder, const mnk_merge_partials* op, mnk_error_out error);

MNK_HEADER_END

#endif
