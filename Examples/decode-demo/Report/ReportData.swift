/// The contents of a report, as plain data.
///
/// The data is untrusted: texts may contain any character, numbers may be missing (`nan`), and lists may be empty.
struct ReportData: Sendable {
    var title: String
    var device: String
    /// The model in one line.
    var model: String
    /// The text that storages were measured on, in one line.
    var passage: String
    /// The system in one line.
    var system: String
    var prompt: String
    /// The text that the model wrote after the prompt.
    var continuation: String
    /// The speed and cost of the continuation, in one line.
    var writing: String
    /// One row per storage, largest first.
    var rows: [ReportRow]
    var attention: ReportAttention?
    var ring: ReportRing?
}

/// One storage of keys and values, and its cost.
struct ReportRow: Sendable {
    /// A short name, such as `f16` or `4-bit`.
    var name: String
    var bytesPerToken: Int
    /// Including scales.
    var bitsPerElement: Double
    var bitsPerByte: Double
    /// The standard error of its difference from the baseline over the passage's bytes; 0 for the baseline.
    var standardError: Double
    /// `|x - x'|^2 / |x|^2` of stored keys and values.
    var error: Double
    var cacheSizes: [CacheSize]
    var dispatchesPerToken: Double
    /// In stacking order.
    var parts: [Part]

    /// Bytes of all caches at one context length.
    struct CacheSize: Sendable {
        var context: Int
        var bytes: Int
    }

    /// A part of the time per token.
    struct Part: Sendable {
        var name: String
        var secondsPerToken: Double
        /// Whether kernels of this package ran it, rather than Swift code on the processor.
        var isKernel: Bool
    }

    var secondsPerToken: Double { parts.reduce(0) { $0 + counted(seconds: $1.secondsPerToken) } }
    var kernelParts: [Part] { parts.filter(\.isKernel) }
}

/// The attention of one head, token by token.
struct ReportAttention: Sendable {
    var layer: Int
    var head: Int
    /// The storage of the keys.
    var storage: String
    /// The position of the first token.
    var firstPosition: Int
    /// One character each.
    var tokens: [String]
    /// The weights of token `i` for tokens `0` to `i`.
    var weights: [[Double]]
}

/// The contents of one layer's ring over time.
struct ReportRing: Sendable {
    var layer: Int
    /// Positions that the layer sees.
    var window: Int
    /// Positions that its cache stores.
    var capacity: Int
    /// Oldest first.
    var samples: [Sample]

    struct Sample: Sendable {
        /// The position of the newest token.
        var newest: Int
        /// The position in each slot.
        var slots: [Int?]
    }
}

/// Seconds that a bar can show: 0 if they are missing or out of range.
func counted(seconds: Double) -> Double { seconds.isFinite && seconds > 0 ? seconds : 0 }
