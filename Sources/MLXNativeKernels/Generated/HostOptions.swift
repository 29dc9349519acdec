// Generated from Sources/API by generate.py: change the description instead.
#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// How a Host device runs kernels.
///
/// The Host device runs the same kernel source as the GPU on the processor's cores. An option that is left at its
/// default takes its value from the environment, if there is one: `MNK_HOST_SEED`, `MNK_HOST_CHECKING` (`guarded` or
/// `full`) and `MNK_HOST_PERTURB` (`1`). So a program can run under checks without a change.
///
/// ```swift
/// var options = HostOptions()
/// options.orderSeed = 7          // dispatches, threadgroups and lanes in a seeded random order
/// options.checking = .full       // races, bounds, undeclared accesses: a step with one fails and names its line
/// let strict = try KernelDevice.host(options)
/// ```
public struct HostOptions: Sendable, Hashable {
    /// Instruction sets that kernels are compiled for.
    public enum Level: Sendable, Hashable, CaseIterable {
        /// The best that both the processor and the program support.
        case best
        /// The baseline of this architecture.
        case baseline
        /// AVX2, on x86-64.
        case avx2
        /// AVX-512, on x86-64, in builds that compile kernels for it. Most do not: only this package's own checks and
        /// benchmarks do.
        case avx512

        var code: mnk_host_options_level {
            switch self {
            case .best: .MNK_HOST_OPTIONS_LEVEL_BEST
            case .baseline: .MNK_HOST_OPTIONS_LEVEL_BASELINE
            case .avx2: .MNK_HOST_OPTIONS_LEVEL_AVX2
            case .avx512: .MNK_HOST_OPTIONS_LEVEL_AVX512
            }
        }
    }

    /// What a device checks while kernels run. A step in which a check fails reports what was found.
    public enum Checking: Sendable, Hashable, CaseIterable {
        /// Nothing.
        case off
        /// Threadgroup memory starts as NaN, and so do bytes that a dispatch declares as written and not as read. A
        /// dispatch must not change a byte that it does not declare as written: in its bindings, close around them, or
        /// in the canaries around a buffer that the device made. No other code may write there while it runs.
        case guarded
        /// Every load and store is checked, on one thread: races between lanes, simdgroups, threadgroups and dispatches
        /// in any execution order, bounds, uninitialized memory, accesses that the dispatch does not declare,
        /// arithmetic that overflows, misaligned vectors and shuffles from inactive lanes. Needs `clang++` at run time.
        /// A kernel that traps or does not end fails its submission; for that the process's handlers of such signals
        /// are replaced while kernels run.
        case full

        var code: mnk_host_options_checking {
            switch self {
            case .off: .MNK_HOST_OPTIONS_CHECKING_OFF
            case .guarded: .MNK_HOST_OPTIONS_CHECKING_GUARDED
            case .full: .MNK_HOST_OPTIONS_CHECKING_FULL
            }
        }
    }

    /// Threads that run threadgroups; 0 means one per core.
    public var workers: Int
    /// If not 0, dispatches without a barrier between them, threadgroups, simdgroups and lanes run in this seeded
    /// random order.
    public var orderSeed: UInt64
    /// What the device checks while kernels run.
    public var checking: Checking
    /// Whether two lanes may write the same value to one location under full checking.
    public var allowsSameValue: Bool
    /// Whether results of math functions are perturbed within the error that Metal allows and sums over a simdgroup
    /// have random trees.
    public var perturbsResults: Bool
    /// The instruction set to use.
    public var level: Level
    /// The C++ compiler for kernels passed as source; without it, `clang++` of the search path.
    public var compiler: String?

    /// Options with these values; each has a default that suits ordinary use.
    public init(
        workers: Int = 0, orderSeed: UInt64 = 0, checking: Checking = .off, allowsSameValue: Bool = false,
        perturbsResults: Bool = false, level: Level = .best, compiler: String? = nil
    ) {
        self.workers = workers
        self.orderSeed = orderSeed
        self.checking = checking
        self.allowsSameValue = allowsSameValue
        self.perturbsResults = perturbsResults
        self.level = level
        self.compiler = compiler
    }

    func descriptor(of owner: String = "", op: String, in memory: CallMemory) throws(KernelError) -> mnk_host_options {
        mnk_host_options(
            workers: try UInt32(workers, "workers", of: owner, op: op),
            order_seed: orderSeed,
            checking: checking.code,
            allows_same_value: allowsSameValue,
            perturbs_results: perturbsResults,
            level: level.code,
            compiler: memory.keep(compiler))
    }
}
