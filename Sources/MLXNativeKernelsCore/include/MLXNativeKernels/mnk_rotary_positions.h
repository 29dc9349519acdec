// The positions of tokens that are rotated, and what is added to them.
#ifndef MNK_ROTARY_POSITIONS_H
#define MNK_ROTARY_POSITIONS_H

#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

typedef struct mnk_cache mnk_cache;

// The position of each token, from -2^31 to 2^31 - 1, on 1 to 4 axes; one axis is used for all of them, as for text. At
// most one of: a first position, a list, a tensor, and the next positions of a cache. Zeros are positions from 0 for
// mnk_multi_rope, and those that tokens get in the cache for a step, whose positions of a cache must be these too.
typedef struct mnk_rotary_positions {
  bool has_first;
  int64_t first;  // of every sequence; those that follow count up
  // Axis after axis, in each all tokens of all sequences; at most 1024 numbers.
  const int32_t* MNK_NULLABLE list;
  size_t list_count;
  uint32_t list_axes;  // 0 is 1
  mnk_tensor* MNK_NULLABLE
      tensor;  // i32 or u32, read by the kernel: [tokens], [axes, tokens], [axes, sequences, tokens]
  // The positions that the next tokens of a cache get, after what the encoder has appended. Lists have the meaning that
  // they have in mnk_cache_step. The encoder must then append the rotated tokens, or it cannot be committed. It knows
  // tokens by their memory, and refuses to append and attend with rows that were not rotated for these tokens, unless a
  // dispatch of it has written them since.
  const mnk_cache* MNK_NULLABLE cache;
  const uint32_t* MNK_NULLABLE sequences;   // NULL: the only sequence of the cache
  const uint32_t* MNK_NULLABLE row_counts;  // how many tokens each listed sequence has; NULL: the same number for each
  size_t sequence_count;
} mnk_rotary_positions;

// One number for each sequence: a list of at most 1024, or an i32 or u32 tensor that the kernel reads.
typedef struct mnk_rotary_offsets {
  const int32_t* MNK_NULLABLE list;
  size_t list_count;
  mnk_tensor* MNK_NULLABLE tensor;
} mnk_rotary_offsets;

MNK_HEADER_END

#endif
