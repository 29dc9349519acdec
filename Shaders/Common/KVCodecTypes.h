// Types that host code and kernels of all ops on quantized caches share.
#pragma once
#include "FloatTypes.h"
#include "FunctionConstants.h"
#include "Layout.h"

// One entry per number of float4s that a lane holds, from four elements to 1/32 of the longest vector.
#define MNK_VECTOR_CHUNKS(ROW) \
  ROW(1)                       \
  ROW(2)                       \
  ROW(4)                       \
  ROW(8)                       \
  ROW(16)                      \
  ROW(32)

// Whether the codebook of turbo for these bits follows a curve, so that kernels can compute its levels.
#define kTurboHasCurve(bits) ((bits) != 2 && (bits) != 4)

// Keys or values of a quantized cache.
#define MNK_KV_CODEC_PLANE(FIELD)                                   \
  FIELD(uint32_t, headDim)                                          \
  FIELD(uint32_t, lanes)      /* that share a vector */             \
  FIELD(uint32_t, simdgroups) /* that share the heads of a token */ \
  FIELD(uint32_t, codeBytes)  /* of a vector */                     \
  FIELD(float, inverseRoot)   /* of WalshHadamard.h */              \
  FIELD(float, scaleFactor)   /* of mlx1 */
MNK_STRUCT(KVCodecPlane, MNK_KV_CODEC_PLANE);
