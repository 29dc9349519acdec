// What MultiRoPE's host code and kernels agree on: exported names and buffer indices. Parameters are those of all
// kernels that rotate.
#pragma once
#include "../Common/RotaryTypes.h"

// A row for each (from, into) pair: multiRoPE_f32_f16 …
#define MNK_MULTI_ROPE_DTYPES(ROW) \
  ROW(f32, f32)                    \
  ROW(f32, f16)                    \
  ROW(f32, bf16)                   \
  ROW(f16, f32)                    \
  ROW(f16, f16)                    \
  ROW(f16, bf16)                   \
  ROW(bf16, f32)                   \
  ROW(bf16, f16)                   \
  ROW(bf16, bf16)

enum MultiRoPEBuffer {
  kMultiRoPEParams = 0,
  kMultiRoPEFrequencies = 1,
  kMultiRoPEQueries = 2,
  kMultiRoPERotatedQueries = 3,
  kMultiRoPEKeys = 4,
  kMultiRoPERotatedKeys = 5,
  kMultiRoPEPositions = 6,
  kMultiRoPEOffsets = 7,
};
