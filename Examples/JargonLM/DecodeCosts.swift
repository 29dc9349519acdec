import MLXNativeKernels

/// What a session's tokens have cost.
public struct DecodeCosts: Sendable {
    /// The ops that run as kernels.
    public enum Op: String, Sendable, CaseIterable {
        /// Rotating queries and keys, and storing keys and values.
        case store
        case attend

        /// The op that a kind of dispatch belongs to.
        init(kind: String) { self = kind == "RotaryAppend" ? .store : .attend }
    }

    /// One op's part.
    public struct Part: Sendable {
        /// Time on the device; 0 where it was not measured.
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
    /// What matrix products and all else between command buffers took.
    public var processorSeconds = 0.0
    /// From encoding to the end of the wait, for all work on the device.
    public var deviceWall = 0.0
    /// The parts of ops.
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
    /// moving numbers to and from the device, submitting work and waiting for it.
    public var shares: [Share] {
        let kernels = parts.values.reduce(0) { $0 + $1.seconds }
        return [Share(name: "Swift", isKernel: false, seconds: max(seconds - kernels, 0))]
            + Op.allCases.map { Share(name: $0.rawValue, isKernel: true, seconds: parts[$0]?.seconds ?? 0) }
    }

    mutating func add(_ summary: Summary, wall: Double) {
        dispatches += summary.total.dispatches
        submissions += 1
        bytesMoved += summary.total.bytesRead + summary.total.bytesWritten
        deviceWall += wall
        for (kind, counts) in summary.kinds {
            parts[Op(kind: kind), default: Part()].seconds += counts.deviceSeconds
            parts[Op(kind: kind), default: Part()].dispatches += counts.dispatches
        }
    }
}
