// Compiles .metal source into the program as Host device kernels. A .cpp file that does so contains nothing else:
//
//   #define MNK_HOST_LIBRARY "conformance"      // the label that mnk::host::linkedLibrary finds
//   #define MNK_HOST_LEVEL MNK_HOST_BASELINE    // or MNK_HOST_AVX2, MNK_HOST_AVX512 (inside #if defined(__x86_64__))
//   #include "HostKernels.h"
//   MNK_HOST_KERNELS_BEGIN
//   #include "../Shaders/Conformance.metal"
//   MNK_HOST_KERNELS_END
//
// There is one file per instruction set; the device picks the best that the processor supports. The source is in an
// unnamed namespace, so libraries may reuse names.
//
// A thread's stack has room for about 32 KiB of private arrays and variables. Source that is compiled at run time is
// refused beyond that; source that is compiled into the program is not checked, and a larger array overflows.
#pragma once

#define MNK_HOST_BASELINE 1
#define MNK_HOST_AVX2 2
#define MNK_HOST_AVX512 3

// AVX-512 implies AVX2, FMA and half conversion.
#if MNK_HOST_LEVEL == MNK_HOST_AVX2
#define MNK_HOST_TARGET_BEGIN \
  _Pragma("clang attribute push (__attribute__((target(\"avx2,fma,f16c,bmi2\"))), apply_to = function)")
#define MNK_HOST_TARGET_END _Pragma("clang attribute pop")
#elif MNK_HOST_LEVEL == MNK_HOST_AVX512
#define MNK_HOST_TARGET_BEGIN \
  _Pragma("clang attribute push (__attribute__((target(\"avx512bw,avx512dq,avx512vl,bmi2\"))), apply_to = function)")
#define MNK_HOST_TARGET_END _Pragma("clang attribute pop")
#else
#define MNK_HOST_TARGET_BEGIN
#define MNK_HOST_TARGET_END
#endif

#include "MetalStdlib/Kernels.h"

#define MNK_HOST_KERNELS_BEGIN \
  MNK_HOST_TARGET_BEGIN        \
  namespace metal {            \
  namespace {
#define MNK_HOST_KERNELS_END \
  }                          \
  }                          \
  MNK_HOST_TARGET_END
