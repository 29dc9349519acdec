// Generated from Sources/API by generate.py: change the description instead.
#import <MLXNativeKernels/MNKDescriptor.h>
#include "MLXNativeKernels/Generated/mnk_host_options.h"

NS_ASSUME_NONNULL_BEGIN

// clang-format off
/// Instruction sets that kernels are compiled for.
typedef NS_CLOSED_ENUM(uint32_t, MNKHostOptionsLevel) {
  /// The best that both the processor and the program support.
  MNKHostOptionsLevelBest = MNK_HOST_OPTIONS_LEVEL_BEST,
  /// The baseline of this architecture.
  MNKHostOptionsLevelBaseline = MNK_HOST_OPTIONS_LEVEL_BASELINE,
  /// AVX2, on x86-64.
  MNKHostOptionsLevelAVX2 NS_SWIFT_NAME(avx2) = MNK_HOST_OPTIONS_LEVEL_AVX2,
  /// AVX-512, on x86-64, in builds that compile kernels for it. Most do not: only this package's own checks and
  /// benchmarks do.
  MNKHostOptionsLevelAVX512 NS_SWIFT_NAME(avx512) = MNK_HOST_OPTIONS_LEVEL_AVX512,
};
// clang-format on

/// What a device checks while kernels run. A step in which a check fails reports what was found.
typedef NS_CLOSED_ENUM(uint32_t, MNKHostOptionsChecking) {
  /// Nothing.
  MNKHostOptionsCheckingOff = MNK_HOST_OPTIONS_CHECKING_OFF,
  /// Threadgroup memory starts as NaN, and so do bytes that a dispatch declares as written and not as read. A dispatch
  /// must not change a byte that it does not declare as written: in its bindings, close around them, or in the canaries
  /// around a buffer that the device made. No other code may write there while it runs.
  MNKHostOptionsCheckingGuarded = MNK_HOST_OPTIONS_CHECKING_GUARDED,
  /// Every load and store is checked, on one thread: races between lanes, simdgroups, threadgroups and dispatches in
  /// any execution order, bounds, uninitialized memory, accesses that the dispatch does not declare, arithmetic that
  /// overflows, misaligned vectors and shuffles from inactive lanes. Needs `clang++` at run time. A kernel that traps
  /// or does not end fails its submission; for that the process's handlers of such signals are replaced while kernels
  /// run.
  MNKHostOptionsCheckingFull = MNK_HOST_OPTIONS_CHECKING_FULL,
};

/// How a Host device runs kernels.
///
/// The Host device runs the same kernel source as the GPU on the processor's cores. An option that is left at its
/// default takes its value from the environment, if there is one: `MNK_HOST_SEED`, `MNK_HOST_CHECKING` (`guarded` or
/// `full`) and `MNK_HOST_PERTURB` (`1`). So a program can run under checks without a change.
@interface MNKHostOptions : MNKDescriptor

/// Threads that run threadgroups; 0 means one per core.
@property(nonatomic) NSUInteger workers;
/// If not 0, dispatches without a barrier between them, threadgroups, simdgroups and lanes run in this seeded random
/// order.
@property(nonatomic) NSUInteger orderSeed;
/// What the device checks while kernels run. `MNKHostOptionsCheckingOff` by default.
@property(nonatomic) MNKHostOptionsChecking checking;
/// Whether two lanes may write the same value to one location under full checking.
@property(nonatomic) BOOL allowsSameValue;
/// Whether results of math functions are perturbed within the error that Metal allows and sums over a simdgroup have
/// random trees.
@property(nonatomic) BOOL perturbsResults;
/// The instruction set to use. `MNKHostOptionsLevelBest` by default.
@property(nonatomic) MNKHostOptionsLevel level;
/// The C++ compiler for kernels passed as source; without it, `clang++` of the search path.
@property(nonatomic, nullable, copy) NSString *compiler;

@end

NS_ASSUME_NONNULL_END
