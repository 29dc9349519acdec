// The instruction sets that kernels in the program are compiled for. The device picks the best that the processor has.
// MNK_HOST_LEVELS, where a build sets it: 1 is what any processor of the architecture has, 2 adds AVX2, 3 adds AVX-512.
#pragma once

#ifndef MNK_HOST_LEVELS
#define MNK_HOST_LEVELS 2
#endif

#if defined(__x86_64__) && MNK_HOST_LEVELS >= 2
#define MNK_HOST_HAS_AVX2 1
#else
#define MNK_HOST_HAS_AVX2 0
#endif

#if defined(__x86_64__) && MNK_HOST_LEVELS >= 3
#define MNK_HOST_HAS_AVX512 1
#else
#define MNK_HOST_HAS_AVX512 0
#endif
