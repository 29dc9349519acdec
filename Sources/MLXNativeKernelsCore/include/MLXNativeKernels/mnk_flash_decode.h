// The C API to attention over caches in caller-owned memory: FlashDecode, and MergePartials for keys that were
// attended to in parts. The headers of these names define them. mnk_attention_cache.h attends over caches that keep
// their own memory.
#ifndef MNK_FLASH_DECODE_H
#define MNK_FLASH_DECODE_H

#include "MLXNativeKernels/mnk_core.h"
#include "MLXNativeKernels/mnk_heads_view.h"
#include "MLXNativeKernels/mnk_kv_cache.h"
#include "MLXNativeKernels/mnk_kv_quantize.h"

MNK_HEADER_BEGIN

typedef enum MNK_CLOSED(mnk_flash_decode_kernel) {
  // One of the next two; or, for more than eight rows on a GPU, one that attends with all of them in one dispatch.
  MNK_KERNEL_AUTOMATIC = 0,
  MNK_KERNEL_VECTOR = 1,  // computes in f32 throughout
  // Takes operands as f16, queries of any magnitude: up to eight rows cost what one costs. The automatic choice never
  // takes it for f32 queries.
  MNK_KERNEL_MATRIX = 2,
} mnk_flash_decode_kernel;

// What merges the parts of splits.
typedef enum MNK_CLOSED(mnk_flash_decode_merge) {
  MNK_MERGE_AUTOMATIC = 0,
  MNK_MERGE_SEPARATE = 1,   // a second dispatch
  MNK_MERGE_IN_KERNEL = 2,  // the threadgroup that stores the last part; not every device can
} mnk_flash_decode_merge;

// All zero are the defaults.
typedef struct mnk_attention_options {
  float scale;                    // at most 4e19 / headDim; 0: 1 / sqrt(headDim)
  bool is_bidirectional;          // else causal: a row sees nothing after its own position
  uint32_t window;                // how many newest positions a row sees, including its own; 0: all
  float softcap;                  // 0: none
  mnk_tensor* MNK_NULLABLE mask;  // f32, f16 or bf16 [rows, keys], [heads, …] or [sequences, heads, …]; axes may be 1
  mnk_tensor* MNK_NULLABLE slopes;  // f32 [heads]: of ALiBi
  mnk_tensor* MNK_NULLABLE sinks;   // f32 [heads]: a score that takes part in the softmax and adds no value
  uint32_t splits;                  // parts that a sequence's keys are divided into; 0: chosen to keep the device busy
  mnk_flash_decode_kernel kernel;
  mnk_flash_decode_merge merge;
  bool window_sees_pinned;  // with a window, a row also sees the pinned positions of a ring
} mnk_attention_options;

// The outputs of attention: `into`, or partials instead, not over mnk_cache. For queries of any layout, axes before the
// last are [sequences, rows, heads], or [rows, heads] for one sequence, or [heads] for one row of one sequence.
typedef struct mnk_attention_results {
  mnk_tensor* MNK_NULLABLE into;           // f32, f16 or bf16
  mnk_tensor* MNK_NULLABLE partial_sums;   // f32, with the values' head dim; both of them or none
  mnk_tensor* MNK_NULLABLE partial_stats;  // f32, with a last axis of 2
  mnk_tensor* MNK_NULLABLE log_sum_exp;    // f32, without the last axis; a sink's score counts
} mnk_attention_results;

// A sequence of the cache, and how many positions it has, including those of the queries.
typedef struct mnk_attended_sequence {
  uint64_t sequence;  // 0 is the first; or MNK_ONLY_SEQUENCE, which a cache of several refuses
  uint64_t length;    // less than 2^31
  uint64_t highest;   // the largest length it has had, if tokens were rolled back in a ring since; 0: length
  // How many rows of the queries are of the sequence; 0: the same number for each sequence, by the queries' shape. With
  // row counts, for all or for none, queries and results are one list of all rows, and there is no mask.
  uint64_t rows;
  // The position of the first row, counted from the cache's first key: length + n if n tokens, which are in other
  // caches, come between the end of this one and the first row; below 0 if this one begins after the row. Else length -
  // rows: the rows are the newest tokens. Partials need it.
  bool has_position;
  int64_t position;
} mnk_attended_sequence;

typedef struct mnk_flash_decode {
  // f32, f16 or bf16 [heads, headDim], [rows, heads, headDim] or [sequences, rows, heads, headDim]; or queries_view
  mnk_tensor* MNK_NULLABLE queries;
  const mnk_kv_cache_view* MNK_NULLABLE dense;  // one of these two
  const mnk_quantized_kv_view* MNK_NULLABLE quantized;
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
  mnk_tensor* partial_sums;        // f32 [parts, …, heads, headDim]: each part as mnk_flash_decode writes it
  mnk_tensor* partial_stats;       // f32 [parts, …, heads, 2]
  mnk_tensor* MNK_NULLABLE sinks;  // f32 [heads]; not if results are partials again
  const mnk_attention_results* results;
} mnk_merge_partials;

mnk_plan* MNK_NULLABLE mnk_merge_partials_make_plan(const mnk_merge_partials* op, mnk_error_out error);
bool mnk_encoder_merge_partials(mnk_encoder* encoder, const mnk_merge_partials* op, mnk_error_out error);

MNK_HEADER_END

#endif
