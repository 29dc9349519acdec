import MLXNativeKernels

/// What a session's tokens have cost.
public struct DecodeCosts: Sendable {
    /// The ops that run as kernels.
    public enum Op: String, Sendable, CaseIterable {
        case rotate, store, attend
    }

    /// One op's part, where ops were submitted one by one.
    public struct Part: Sendable {
        /// From encoding to the end of the wait.
        public var seconds = 0.0
        /// Kernels that were launched.
        public var dispatches = 0
    }

    /// Tokens that were read.
    public var tokens = 0
    /// All dispatches.
    public var dispatches = 0
    /// Command buffers.
    public var submissions = 0
    /// Bytes that kernels read and wrote.
    public var bytesMoved = 0
    /// What matrix products and all else on the processor took.
    public var processorSeconds = 0.0
    /// From encoding to the end of the wait, for all work on the device.
    public var deviceWall = 0.0
    /// The parts of ops; empty where a layer was submitted as one.
    public var parts: [Op: Part] = [:]

    public init() {}

    /// Seconds of all tokens.
    public var seconds: Double { processorSeconds + deviceWall }

    /// One part of all seconds.
    public struct Share: Sendable {
        public let name: String
        /// Whether kernels took it, rather than the processor.
        public let isKernel: Bool
        public let seconds: Double
    }

    /// What the seconds went into, in the order in which a layer does it. What is no kernel is Swift: matrix products,
    /// and moving numbers to and from the device.
    public var shares: [Share] {
        [Share(name: "Swift", isKernel: false, seconds: processorSeconds)]
            + Op.allCases.map { Share(name: $0.rawValue, isKernel: true, seconds: parts[$0]?.seconds ?? 0) }
    }

    mutating func add(_ summary: Summary, of op: Op?, wall: Double) {
        dispatches += summary.total.dispatches
        submissions += 1
        bytesMoved += summary.total.bytesRead + summary.total.bytesWritten
        deviceWall += wall
        guard let op else { return }
        parts[op, default: Part()].seconds += wall
        parts[op, default: Part()].dispatches += summary.total.dispatches
    }
}
