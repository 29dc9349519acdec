// The instruction sets that the program's kernels are compiled for. The device picks the best that the processor
// supports. A build can set MNK_HOST_LEVELS: 1 is the architecture's baseline, 2 adds AVX2, 3 adds AVX-512.
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
