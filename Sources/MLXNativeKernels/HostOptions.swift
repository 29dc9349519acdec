/// How a Host device runs kernels.
///
/// The Host device runs the same kernel text as the GPU on the processor's cores. The options exist for checking:
///
/// ```swift
/// var options = HostOptions()
/// options.orderSeed = 7          // lanes and threadgroups in a seeded random order
/// options.poison = true          // threadgroup memory starts as NaN
/// let strict = try KernelDevice.host(options)
/// ```
public struct HostOptions: Sendable, Equatable {
    /// Instruction sets that kernels are compiled for.
    public enum Level: Int32, Sendable, CaseIterable {
        /// The best that the processor has.
        case best = 0
        /// What every processor of this architecture has.
        case baseline = 1
        /// AVX2, on x86-64.
        case avx2 = 2
        /// AVX-512, on x86-64.
        case avx512 = 3
    }

    /// Threads that run threadgroups; 0 means one per core.
    public var workers: Int
    /// Where not 0: lanes, simdgroups and threadgroups run in this seeded random order.
    public var orderSeed: UInt64
    /// Whether threadgroup memory is filled with NaN before each threadgroup.
    public var poison: Bool
    /// The instruction set to use.
    public var level: Level
    /// The C++ compiler for kernels given as text; `nil` means `clang++` of the search path.
    public var compiler: String?

    /// Options with these values; each has a default that suits ordinary use.
    public init(
        workers: Int = 0, orderSeed: UInt64 = 0, poison: Bool = false, level: Level = .best, compiler: String? = nil
    ) {
        self.workers = workers
        self.orderSeed = orderSeed
        self.poison = poison
        self.level = level
        self.compiler = compiler
    }
}
