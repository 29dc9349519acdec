// Generated from Sources/API by generate.py: change the description instead.
// Attention over caches that the caller owns: FlashDecode, and MergePartials for keys that were attended to in parts.
#ifndef MNK_FLASH_DECODE_H
#define MNK_FLASH_DECODE_H

#include "MLXNativeKernels/Generated/mnk_attention_options.h"
#include "MLXNativeKernels/Generated/mnk_cache_views.h"
#include "MLXNativeKernels/Generated/mnk_quantized_views.h"
#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

// The memory that is attended to.
// Exactly one of these is filled in.
typedef struct mnk_flash_decode_cache {
  // Keys and values as numbers.
  mnk_kv_cache_view dense;
  // Keys and values as codes.
  mnk_quantized_kv_cache_view quantized;
} mnk_flash_decode_cache;

// Attends tokens of sequences, by default the newest, to all that a cache holds of them.
//
// Row i of a sequence with `length` positions is the token at `p = length - rows + i`, or at `p = position + i` if
// there is a position (`mnk_attended_sequence.position`). It sees the keys at positions up to p, and newer than
// `p - window` if there is a window:
//
//     out = sum over visible k of weight[k] * value k,      weight = softmax of the scores
//
// `mnk_attention_options` says what scores are. A row that sees no key, or only keys of score -infinity, is zero;
// scores below -3.5e29 count as -infinity. What is not visible to a row is not read for it. Without a window, a row
// sees what a ring holds up to its own position: several rows, whose keys are all stored before the first attends, see
// less than one at a time.
//
// Caches may be dense or quantized; queries are rotated into the domain of codes, and results back, inside. Over a
// latent cache, key k is value k and then the rest of the key: queries are those of absorbed attention, in the order of
// keys.
typedef struct mnk_flash_decode {
  // Queries of any float type; the tokens of the view are rows. A tensor is `[heads, headDim]` for one row,
  // `[rows, heads, headDim]`, or `[sequences, rows, heads, headDim]`. With row counts it is one view of all rows, as of
  // one sequence, and so are results.
  mnk_heads_view queries;
  // The memory that is attended to.
  mnk_flash_decode_cache cache;
  // One for each sequence of the queries, or any that say how many of the rows they have.
  const mnk_attended_sequence* MNK_NULLABLE sequences;
  size_t sequence_count;
  // Where results go.
  mnk_attention_results results;
  // How queries attend.
  mnk_attention_options options;
  // Memory for results between dispatches: u8, of the scratch bytes of the plan. Without it, the device provides it.
  mnk_tensor* MNK_NULLABLE scratch;
} mnk_flash_decode;

// Checks every rule and returns what would run on a device, or on an unknown GPU, without running it.
mnk_plan* MNK_NULLABLE mnk_flash_decode_make_plan(const mnk_flash_decode* op, const mnk_device* MNK_NULLABLE device,
                                                  mnk_error_out error);
bool mnk_encoder_flash_decode(mnk_encoder* encoder, const mnk_flash_decode* op, mnk_error_out error);

// Finishes attention whose keys were attended to in parts, on one device or on several: the result is that of
// `mnk_flash_decode` over all keys at once. With the parts j of a row and their stats (rowMax, rowSum):
//
//     top = max over j of rowMax[j],   w[j] = 2^(rowMax[j] - top)
//     out = sum over j of w[j] * sums[j]  /  (sum over j of w[j] * rowSum[j] + 2^(sink * log2(e) - top))
typedef struct mnk_merge_partials {
  // What is merged, with an axis of parts before those that `mnk_flash_decode` writes; at most 1024 parts.
  mnk_attention_partials parts;
  // A score for each head that takes part in the softmax and adds no value, f32 `[heads]`; not if results are partials
  // again.
  mnk_tensor* MNK_NULLABLE sinks;
  // Where results go, with the axes of the parts after the first.
  mnk_attention_results results;
} mnk_merge_partials;

// Checks every rule and returns what would run, without running it.
mnk_plan* MNK_NULLABLE mnk_merge_partials_make_plan(const mnk_merge_partials* op, mnk_error_out error);
bool mnk_encoder_merge_partials(mnk_encoder* encoder, const mnk_merge_partials* op, mnk_error_out error);

MNK_HEADER_END

#endif
