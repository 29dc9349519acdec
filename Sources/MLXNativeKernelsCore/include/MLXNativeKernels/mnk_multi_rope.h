// The C API of MultiRoPE, the rotary embedding. MultiRoPE.hpp and RotaryEmbedding.hpp define it.
#ifndef MNK_MULTI_ROPE_H
#define MNK_MULTI_ROPE_H

#include "MLXNativeKernels/mnk_core.h"
#include "MLXNativeKernels/mnk_heads_view.h"

MNK_HEADER_BEGIN

// The numbers are those of ggml's rope types, so 0 is interleaved pairs.
typedef enum MNK_CLOSED(mnk_rotary_layout) {
  MNK_INTERLEAVED_PAIRS = 0,
  MNK_HALF_SPLIT = 2,
  MNK_MROPE = 8,
  MNK_VISION = 24,
  MNK_IMROPE = 40,
} mnk_rotary_layout;
typedef enum MNK_CLOSED(mnk_rotary_pairing) {
  MNK_HALF_OF_ROPE_DIM = 0,
  MNK_HALF_OF_HEAD_DIM = 1,
  MNK_NEIGHBORS = 2,
} mnk_rotary_pairing;
typedef enum MNK_CLOSED(mnk_rotary_other_axis) { MNK_OTHER_AXIS_0 = 0, MNK_OTHER_AXIS_3 = 1 } mnk_rotary_other_axis;

typedef struct mnk_yarn {
  uint64_t original_context;
  float extension_factor;  // from 0, which only scales positions, to 1, which most models have
  float attention_factor;
  float beta_fast;       // 32 for most models; greater than beta_slow unless extension_factor is 0
  float beta_slow;       // 1 for most models
  bool keeps_fractions;  // of the pairs where the blend begins and ends, which are rounded otherwise
} mnk_yarn;

typedef struct mnk_rotary_embedding {
  mnk_rotary_layout layout;
  uint32_t sections[4];
  double base;
  bool has_rope_dim;  // then rope_dim elements are rotated; otherwise all
  uint64_t rope_dim;
  mnk_rotary_pairing pairing;
  mnk_rotary_other_axis other_axis;
  double scale;                                 // 1 for most models; with YaRN, 1 / factor
  const float* MNK_NULLABLE frequency_factors;  // a divisor for each pair; NULL: none
  size_t frequency_factor_count;
  bool has_yarn;
  mnk_yarn yarn;
  bool is_inverse;
} mnk_rotary_embedding;

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
