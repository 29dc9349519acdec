// Generated from Sources/API by generate.py: change the description instead.
// How a Host device runs kernels.
#pragma once
#include <cstdint>
#include <string>

namespace mnk {

// How a Host device runs kernels.
//
// The Host device runs the same kernel source as the GPU on the processor's cores. An option that is left at its
// default takes its value from the environment, if there is one: `MNK_HOST_SEED`, `MNK_HOST_CHECKING` (`guarded` or
// `full`) and `MNK_HOST_PERTURB` (`1`). So a program can run under checks without a change.
struct HostOptions {
  // Instruction sets that kernels are compiled for.
  enum class Level : uint32_t {
    // The best that both the processor and the program support.
    best,
    // The baseline of this architecture.
    baseline,
    // AVX2, on x86-64.
    avx2,
    // AVX-512, on x86-64, in builds that compile kernels for it. Most do not: only this package's own checks and
    // benchmarks do.
    avx512,
  };

  // What a device checks while kernels run. A step in which a check fails reports what was found.
  enum class Checking : uint32_t {
    // Nothing.
    off,
    // Threadgroup memory starts as NaN, and so do bytes that a dispatch declares as written and not as read. A dispatch
    // must not change a byte that it does not declare as written: in its bindings, close around them, or in the
    // canaries around a buffer that the device made. No other code may write there while it runs.
    guarded,
    // Every load and store is checked, on one thread: races between lanes, simdgroups, threadgroups and dispatches in
    // any execution order, bounds, uninitialized memory, accesses that the dispatch does not declare, arithmetic that
    // overflows, misaligned vectors and shuffles from inactive lanes. Needs `clang++` at run time. A kernel that traps
    // or does not end fails its submission; for that the process's handlers of such signals are replaced while kernels
    // run.
    full,
  };

  // Threads that run threadgroups; 0 means one per core.
  uint32_t workers = 0;
  // If not 0, dispatches without a barrier between them, threadgroups, simdgroups and lanes run in this seeded random
  // order.
  uint64_t orderSeed = 0;
  // What the device checks while kernels run.
  Checking checking = Checking::off;
  // Whether two lanes may write the same value to one location under full checking.
  bool allowsSameValue = false;
  // Whether results of math functions are perturbed within the error that Metal allows and sums over a simdgroup have
  // random trees.
  bool perturbsResults = false;
  // The instruction set to use.
  Level level = Level::best;
  // The C++ compiler for kernels passed as source; without it, `clang++` of the search path.
  std::string compiler;
  // Overrides `DeviceProfile::family`, so that ops choose the kernels of that GPU. This package's tests have all of
  // them; other programs lack those of attention that only GPUs choose.
  std::string family = "host";
};

}  // namespace mnk
