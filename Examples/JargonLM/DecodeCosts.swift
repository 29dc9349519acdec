import MLXNativeKernels

/// The cost of a session's tokens.
public struct DecodeCosts: Sendable {
    /// The ops that run as kernels.
    public enum Op: String, Sendable, CaseIterable {
        /// Rotating queries and keys, and storing keys and values.
        case store
        case attend

        /// The op that a kind of dispatch belongs to.
        init(kind: String) { self = kind == "RotaryAppend" ? .store : .attend }
    }

    /// The cost of one op.
    public struct Part: Sendable {
        /// Time on the device; 0 if it was not measured.
        public var seconds = 0.0
        /// Kernel launches.
        public var dispatches = 0
    }

    /// Tokens read.
    public var tokens = 0
    /// All dispatches.
    public var dispatches = 0
    /// Command buffers.
    public var submissions = 0
    /// Bytes that kernels read and wrote.
    public var bytesMoved = 0
    /// Time for matrix products and all other work between command buffers.
    public var processorSeconds = 0.0
    /// Time from encoding to the end of the wait, for all work on the device.
    public var deviceWall = 0.0
    /// The cost of each op.
    public var parts: [Op: Part] = [:]

    public init() {}

    /// The time of all tokens.
    public var seconds: Double { processorSeconds + deviceWall }

    /// A share of the total time.
    public struct Share: Sendable {
        public let name: String
        /// Whether kernels took the time, rather than the processor.
        public let isKernel: Bool
        public let seconds: Double
    }

    /// The total time by part, in the order of a layer's work. Everything outside kernels is Swift: matrix products,
    /// moving data to and from the device, submitting work and waiting for it.
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
