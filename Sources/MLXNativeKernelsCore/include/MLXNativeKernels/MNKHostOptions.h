#import <MLXNativeKernels/MNKDescriptor.h>

NS_ASSUME_NONNULL_BEGIN

// The formatter takes a name for Swift in an enum for something else.
// clang-format off
/// Instruction sets that kernels of the Host device are compiled for.
typedef NS_CLOSED_ENUM(int32_t, MNKHostLevel) {
  /// The best that both the processor and the program support.
  MNKHostLevelBest = 0,
  /// The baseline of this architecture.
  MNKHostLevelBaseline,
  MNKHostLevelAVX2 NS_SWIFT_NAME(avx2),
  /// In builds that compile kernels for it: only this package's own checks and benchmarks do.
  MNKHostLevelAVX512 NS_SWIFT_NAME(avx512),
};
// clang-format on

/// What a Host device checks while kernels run. A step in which a check fails reports what was found.
typedef NS_CLOSED_ENUM(int32_t, MNKHostChecking) {
  MNKHostCheckingOff = 0,
  /// Threadgroup memory and outputs start as NaN, and a dispatch must not change a byte that it does not declare.
  MNKHostCheckingGuarded,
  /// Every load and store is checked, on one thread. Needs `clang++` at run time.
  MNKHostCheckingFull,
};

/// How a Host device runs kernels.
///
/// The Host device runs the same kernel source as the GPU on the processor's cores. An option that is left at its
/// default takes its value from the environment, if there is one: `MNK_HOST_SEED`, `MNK_HOST_CHECKING` (`guarded` or
/// `full`) and `MNK_HOST_PERTURB` (`1`).
@interface MNKHostOptions : MNKDescriptor

/// Threads that run threadgroups; 0 means one per core.
@property(nonatomic) NSUInteger workers;
/// If not 0, dispatches without a barrier between them, threadgroups and lanes run in this seeded random order.
@property(nonatomic) uint64_t orderSeed;
@property(nonatomic) MNKHostChecking checking;
/// Whether two lanes may write the same value to one location under full checking.
@property(nonatomic) BOOL allowsSameValue;
/// Whether results of math functions are perturbed within the error that Metal allows.
@property(nonatomic) BOOL perturbsResults;
@property(nonatomic) MNKHostLevel level;
/// The C++ compiler for kernels passed as source; `nil` means `clang++` of the search path.
@property(nonatomic, nullable, copy) NSString *compiler;

@end

NS_ASSUME_NONNULL_END
