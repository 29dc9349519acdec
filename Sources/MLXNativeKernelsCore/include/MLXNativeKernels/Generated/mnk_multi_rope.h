// Generated from Sources/API by generate.py: change the description instead.
// MultiRoPE, which rotates queries and keys by their positions, and the rotation of a step.
#ifndef MNK_MULTI_ROPE_H
#define MNK_MULTI_ROPE_H

#include "MLXNativeKernels/Generated/mnk_cache_views.h"
#include "MLXNativeKernels/Generated/mnk_rotary.h"
#include "MLXNativeKernels/mnk_core.h"
#include "MLXNativeKernels/mnk_rotary_positions.h"

MNK_HEADER_BEGIN

// How queries and keys of a step over a cache are rotated, as `mnk_multi_rope` defines it.
//
// Pass queries and keys that are not rotated. The call fails if the same step has rotated them by positions of a cache;
// it cannot see rotations by numbers, or in earlier steps.
typedef struct mnk_rotary_step {
  // How positions rotate pairs.
  mnk_rotary_embedding embedding;
  // The position of each of the step's tokens; a zeroed one means the positions that they get in the cache.
  mnk_rotary_positions positions;
  // One number for each sequence, added to all its positions, such as a model's rope delta; a tensor is i32 or u32.
  mnk_rotary_offsets offsets;
} mnk_rotary_step;

// Rotates queries and keys by their positions, in one dispatch if they have the same element types and are both in
// place or both out of place.
//
//     into[sequence, token, head] = rotated(from[sequence, token, head])
//
// as `mnk_rotary_embedding` defines it, by default in place, in any float type, computing in f32. Angles are computed
// in integers, as fractions of a turn: position one million is as exact as position one.
typedef struct mnk_multi_rope {
  // The queries.
  mnk_heads_view queries;
  // The keys: other heads of the same tokens.
  mnk_heads_view keys;
  // Where rotated queries go, with their own element type and strides; a zeroed one means in place.
  mnk_heads_view rotated_queries;
  // Where rotated keys go; a zeroed one means in place.
  mnk_heads_view rotated_keys;
  // The position of each token.
  mnk_rotary_positions positions;
  // One number for each sequence, added to all its positions, such as a model's rope delta; a tensor is i32 or u32.
  mnk_rotary_offsets offsets;
  // How positions rotate pairs.
  mnk_rotary_embedding rotary;
} mnk_multi_rope;

// Checks every rule and returns what would run, without running it.
mnk_plan* MNK_NULLABLE mnk_multi_rope_make_plan(const mnk_multi_rope* op, mnk_error_out error);
bool mnk_encoder_multi_rope(mnk_encoder* encoder, const mnk_multi_rope* op, mnk_error_out error);

MNK_HEADER_END

#endif
