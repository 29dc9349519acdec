// What Hadamard's host code and kernels agree on: buffer indices, parameters.
#pragma once
#include "../Common/KVCodecTypes.h"

// float4s of a lane, for vectors of up to 512 elements.
#define MNK_HADAMARD_CHUNKS(ROW) \
  ROW(1)                         \
  ROW(2)                         \
  ROW(4)

// Simdgroups that share a longer vector. Each holds 1024 elements.
#define MNK_HADAMARD_PARTS(ROW) \
  ROW(1)                        \
  ROW(2)                        \
  ROW(4)

enum HadamardBuffer {
  kHadamardParams = 0,
  kHadamardFrom = 1,
  kHadamardInto = 2,
};

enum HadamardSigns {
  kHadamardNoSigns = 0,
  kHadamardTurboSigns = 1,
  kHadamardMlx1Signs = 2,
};

#define MNK_HADAMARD_PARAMS(FIELD)                 \
  FIELD(uint32_t, length)                          \
  FIELD(uint32_t, lanes) /* that share a vector */ \
  FIELD(uint32_t, vectors)                         \
  FIELD(uint32_t, signs) /* HadamardSigns */       \
  FIELD(uint32_t, isInverse)                       \
  FIELD(float, inverseRoot) /* of WalshHadamard.h */
MNK_STRUCT(HadamardParams, MNK_HADAMARD_PARAMS);
