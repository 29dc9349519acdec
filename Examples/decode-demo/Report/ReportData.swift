/// What a report shows, as plain data.
///
/// Nothing in it is trusted: texts may hold any character, numbers may be missing (`nan`), and lists may be empty.
struct ReportData: Sendable {
    var title: String
    var device: String
    /// The model in one line.
    var model: String
    /// What the storages were measured on, in one line.
    var passage: String
    /// The system in one line.
    var system: String
    var prompt: String
    /// What the model wrote after the prompt.
    var continuation: String
    /// How the continuation was written, in one line.
    var writing: String
    /// One for each storage, the largest first.
    var rows: [ReportRow]
    var attention: ReportAttention?
    var ring: ReportRing?
}

/// One storage of keys and values, and what it costs.
struct ReportRow: Sendable {
    /// A short name, such as `f16` or `4-bit`.
    var name: String
    var bytesPerToken: Int
    /// Scales included.
    var bitsPerElement: Double
    var bitsPerByte: Double
    /// The standard error of its difference to the base over the passage's bytes; 0 for the base.
    var standardError: Double
    /// `|x - x'|^2 / |x|^2` of stored keys and values.
    var error: Double
    var cacheSizes: [CacheSize]
    var dispatchesPerToken: Double
    /// In the order in which they are stacked.
    var parts: [Part]

    /// Bytes of all caches at one length of context.
    struct CacheSize: Sendable {
        var context: Int
        var bytes: Int
    }

    /// A part of the time that one token takes.
    struct Part: Sendable {
        var name: String
        var secondsPerToken: Double
        /// Whether kernels of this package ran it, rather than plain code on the processor.
        var isKernel: Bool
    }

    var secondsPerToken: Double { parts.reduce(0) { $0 + counted(seconds: $1.secondsPerToken) } }
    var kernelParts: [Part] { parts.filter(\.isKernel) }
}

/// Where one head looked, token by token.
struct ReportAttention: Sendable {
    var layer: Int
    var head: Int
    /// The storage that keys were read from.
    var storage: String
    /// The position of the first token.
    var firstPosition: Int
    /// One character each.
    var tokens: [String]
    /// For token `i`, its weights for tokens `0` to `i`.
    var weights: [[Double]]
}

/// What the slots of one layer's ring held over time.
struct ReportRing: Sendable {
    var layer: Int
    var capacity: Int
    /// The oldest first.
    var samples: [Sample]

    struct Sample: Sendable {
        /// The position of the newest token.
        var newest: Int
        /// The position that each slot holds.
        var slots: [Int?]
    }
}

/// Seconds that a bar can show: 0 where there are none, or no sensible ones.
func counted(seconds: Double) -> Double { seconds.isFinite && seconds > 0 ? seconds : 0 }
