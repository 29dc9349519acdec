// The C API of MultiRoPE, the rotary embedding. MultiRoPE.hpp defines it.
#ifndef MNK_MULTI_ROPE_H
#define MNK_MULTI_ROPE_H

#include "MLXNativeKernels/Generated/mnk_cache_views.h"
#include "MLXNativeKernels/Generated/mnk_rotary.h"
#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

// `list`, or an i32 or u32 tensor that the kernel reads, before which a list is ignored. Without either there are none.
typedef struct mnk_rotary_numbers {
  const int32_t* MNK_NULLABLE list;
  size_t list_count;
  uint32_t list_axes;  // of a list of positions; 0 is 1
  mnk_tensor* MNK_NULLABLE tensor;
} mnk_rotary_numbers;

typedef struct mnk_cache mnk_cache;

// The positions that the next tokens of a cache get, after what the encoder has appended. Lists have the meaning that
// they have in mnk_cache_step. The encoder must then append the rotated tokens, or it cannot be committed. It knows
// tokens by their memory, and refuses to append and attend with rows that were not rotated for these tokens, unless a
// dispatch of it has written them since.
typedef struct mnk_next_positions {
  const mnk_cache* MNK_NULLABLE cache;      // NULL: none
  const uint32_t* MNK_NULLABLE sequences;   // NULL: the only sequence of the cache
  const uint32_t* MNK_NULLABLE row_counts;  // how many tokens each listed sequence has; NULL: the same number for each
  size_t sequence_count;
} mnk_next_positions;

typedef struct mnk_multi_rope {
  mnk_heads_view queries;
  mnk_heads_view keys;             // a view without a tensor is left out: no keys
  mnk_heads_view rotated_queries;  // and results in place
  mnk_heads_view rotated_keys;
  int64_t first_position;        // of every sequence, if there are no positions
  mnk_rotary_numbers positions;  // axis after axis, in each all tokens of all sequences
  mnk_next_positions next;       // instead of both
  mnk_rotary_numbers offsets;    // one for each sequence
  mnk_rotary_embedding rotary;
} mnk_multi_rope;

// Checks every rule and returns what would run, without running it.
mnk_plan* MNK_NULLABLE mnk_multi_rope_make_plan(const mnk_multi_rope* op, mnk_error_out error);
bool mnk_encoder_multi_rope(mnk_encoder* encoder, const mnk_multi_rope* op, mnk_error_out error);

MNK_HEADER_END

#endif
