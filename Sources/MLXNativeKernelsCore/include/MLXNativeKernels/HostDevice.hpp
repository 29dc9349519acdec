// The Host device: runs the kernels' .metal source, compiled as C++, on the processor's cores. The product
// MLXNativeKernelsHost defines it, which is linked by default on Linux.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "MLXNativeKernels/Device.hpp"

namespace mnk::host {

// Instruction sets that kernels are compiled for; for AVX-512 only in this package's own checks and benchmarks.
enum class Level : int32_t { best = 0, baseline = 1, avx2 = 2, avx512 = 3 };

// What a device checks while kernels run. A submission in which a check fails reports what was found.
enum class Checking : int32_t {
  off = 0,
  // Threadgroup memory starts as NaN, and so do bytes that a dispatch declares as written and not as read. A dispatch
  // must not change a byte that it does not declare as written: in its bindings, close around them, or in the canaries
  // around a buffer that the device made. No other code may write there while it runs.
  guarded = 1,
  // Kernels are compiled once more, with a callback before every load and store, and run on one thread. This finds
  // races between lanes, simdgroups, threadgroups and dispatches in any execution order, accesses outside of a binding
  // or an array, reads of uninitialized memory, accesses that the dispatch does not declare, arithmetic that overflows,
  // misaligned vectors and shuffles from inactive lanes. A kernel that traps or does not end fails its submission; for
  // that the process's handlers of such signals are replaced while kernels run.
  full = 2,
};

// A field that is not set takes its value from the environment, if there is one: MNK_HOST_SEED, MNK_HOST_CHECKING
// (guarded or full) and MNK_HOST_PERTURB (1). So any program can run under checks without a change.
struct Options {
  uint32_t workers = 0;    // threads that run threadgroups; 0: one per core
  uint64_t orderSeed = 0;  // not 0: dispatches, threadgroups, simdgroups and lanes run in this seeded random order
  Checking checking = Checking::off;
  bool allowSameValue = false;  // full: two lanes may write the same value to one location
  bool perturb = false;         // results are perturbed within the error that Metal allows, sums have random trees
  Level level = Level::best;
  std::string compiler;  // for kernels compiled at run time; empty: clang++ of the search path
  // Overrides DeviceProfile::family, so that ops choose the kernels of that GPU. This package's
  // tests have all of them; other programs lack those of attention that only GPUs choose.
  std::string family = "host";
};

// On Apple platforms the program must link the product MLXNativeKernelsHost and call mnk_register_host_device() of
// <MLXNativeKernelsHost/MLXNativeKernelsHost.h> first. Otherwise this fails with `unsupported` and names the product.
Result<std::shared_ptr<Device>> makeDevice(const Options& options);

}  // namespace mnk::host
