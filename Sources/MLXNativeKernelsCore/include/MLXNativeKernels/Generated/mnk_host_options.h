// Generated from Sources/API by generate.py: change the description instead.
// How a Host device runs kernels.
#ifndef MNK_HOST_OPTIONS_H
#define MNK_HOST_OPTIONS_H

#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

// Instruction sets that kernels are compiled for.
typedef enum MNK_CLOSED(mnk_host_options_level) {
  // The best that both the processor and the program support.
  MNK_HOST_OPTIONS_LEVEL_BEST = 0,
  // The baseline of this architecture.
  MNK_HOST_OPTIONS_LEVEL_BASELINE = 1,
  // AVX2, on x86-64.
  MNK_HOST_OPTIONS_LEVEL_AVX2 = 2,
  // AVX-512, on x86-64, in builds that compile kernels for it. Most do not: only this package's own checks and
  // benchmarks do.
  MNK_HOST_OPTIONS_LEVEL_AVX512 = 3,
} mnk_host_options_level;

// What a device checks while kernels run. A step in which a check fails reports what was found.
typedef enum MNK_CLOSED(mnk_host_options_checking) {
  // Nothing.
  MNK_HOST_OPTIONS_CHECKING_OFF = 0,
  // Threadgroup memory starts as NaN, and so do bytes that a dispatch declares as written and not as read. A dispatch
  // must not change a byte that it does not declare as written: in its bindings, close around them, or in the canaries
  // around a buffer that the device made. No other code may write there while it runs.
  MNK_HOST_OPTIONS_CHECKING_GUARDED = 1,
  // Every load and store is checked, on one thread: races between lanes, simdgroups, threadgroups and dispatches in any
  // execution order, bounds, uninitialized memory, accesses that the dispatch does not declare, arithmetic that
  // overflows, misaligned vectors and shuffles from inactive lanes. Needs `clang++` at run time. A kernel that traps or
  // does not end fails its submission; for that the process's handlers of such signals are replaced while kernels run.
  MNK_HOST_OPTIONS_CHECKING_FULL = 2,
} mnk_host_options_checking;

// How a Host device runs kernels.
//
// The Host device runs the same kernel source as the GPU on the processor's cores. An option that is left at its
// default takes its value from the environment, if there is one: `MNK_HOST_SEED`, `MNK_HOST_CHECKING` (`guarded` or
// `full`) and `MNK_HOST_PERTURB` (`1`). So a program can run under checks without a change.
typedef struct mnk_host_options {
  // Threads that run threadgroups; 0 means one per core.
  uint32_t workers;
  // If not 0, dispatches without a barrier between them, threadgroups, simdgroups and lanes run in this seeded random
  // order.
  uint64_t order_seed;
  // What the device checks while kernels run.
  mnk_host_options_checking checking;
  // Whether two lanes may write the same value to one location under full checking.
  bool allows_same_value;
  // Whether results of math functions are perturbed within the error that Metal allows and sums over a simdgroup have
  // random trees.
  bool perturbs_results;
  // The instruction set to use.
  mnk_host_options_level level;
  // The C++ compiler for kernels passed as source; without it, `clang++` of the search path.
  const char* MNK_NULLABLE compiler;
} mnk_host_options;

MNK_HEADER_END

#endif
