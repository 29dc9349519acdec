/// How a Host device runs kernels.
///
/// The Host device runs the same kernel source as the GPU on the processor's cores. The options exist for checking:
///
/// ```swift
/// var options = HostOptions()
/// options.orderSeed = 7          // dispatches, threadgroups and lanes in a seeded random order
/// options.checking = .full       // races, bounds, undeclared accesses: a step with one fails and names its line
/// let strict = try KernelDevice.host(options)
/// ```
///
/// An option that is left at its default takes its value from the environment, if there is one: `MNK_HOST_SEED`,
/// `MNK_HOST_CHECKING` (`guarded` or `full`) and `MNK_HOST_PERTURB` (`1`). So a program can run under checks without a
/// change.
public struct HostOptions: Sendable, Equatable {
    /// Instruction sets that kernels are compiled for.
    public enum Level: Int32, Sendable, CaseIterable {
        /// The best that both the processor and the program support.
        case best = 0
        /// The baseline of this architecture.
        case baseline = 1
        /// AVX2, on x86-64.
        case avx2 = 2
        /// AVX-512, on x86-64, in builds that compile kernels for it. Most do not: only this package's own checks and
        /// benchmarks do.
        case avx512 = 3
    }

    /// What a device checks while kernels run. A step in which a check fails throws what was found.
    public enum Checking: Int32, Sendable, CaseIterable {
        /// Nothing.
        case off = 0
        /// Threadgroup memory and outputs start as NaN, and a dispatch must not change a byte that it does not declare.
        case guarded = 1
        /// Every load and store is checked, on one thread: races in any execution order, bounds, uninitialized memory,
        /// accesses that the dispatch does not declare, overflows, misaligned vectors. Needs `clang++` at run time.
        case full = 2
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
    /// The C++ compiler for kernels passed as source; `nil` means `clang++` of the search path.
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
}
