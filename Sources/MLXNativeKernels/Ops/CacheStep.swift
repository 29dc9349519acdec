#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Tokens of sequences of a cache, to append, to attend, or both.
struct CacheStep {
    var queries: HeadsView?
    var keys: HeadsView?
    var values: HeadsView?
    var sequences: [Int]
    var rowCounts: [Int]?
    var results: AttentionResults?
    var options: AttentionOptions?
    var rotary: RotaryStep?
    var prefixes: [CachePrefix] = []
}

extension KernelEncoder {
    /// Calls the C API with a step.
    ///
    /// - Parameter op: What errors name as the op.
    func record(
        _ step: CacheStep, op: String,
        _ body: (OpaquePointer, UnsafePointer<mnk_cache_step>, ErrorOut) -> Bool
    ) throws(KernelError) {
        let operands = try Operands(step, op: op)
        try record { encoder, error in operands.withDescriptor { body(encoder, $0, error) } }
    }
}

/// The step in the types of the C API.
private struct Operands {
    private let step: CacheStep
    private let descriptor: mnk_cache_step
    private let sequences: [UInt32]
    private let rowCounts: [UInt32]?
    private let results: mnk_attention_results?
    private let options: mnk_attention_options?
    private let rotary: RotaryStepOperands?
    private var prefixes: [mnk_cache_prefix] = []

    init(_ step: CacheStep, op: String) throws(KernelError) {
        self.step = step
        var descriptor = mnk_cache_step()
        descriptor.size = MemoryLayout<mnk_cache_step>.size
        if let queries = step.queries { descriptor.queries = try queries.descriptor("queries", op: op) }
        if let keys = step.keys { descriptor.keys = try keys.descriptor("keys", op: op) }
        if let values = step.values { descriptor.values = try values.descriptor("values", op: op) }
        descriptor.sequence_count = step.sequences.count
        self.descriptor = descriptor
        sequences = try numbers(step.sequences, "sequence", op: op)
        results = step.results?.descriptor
        options = try step.options?.descriptor(op: op)
        rotary = if let rotary = step.rotary { try RotaryStepOperands(rotary, op: op) } else { nil }
        for prefix in step.prefixes {
            prefixes.append(try prefix.descriptor(op: op))
        }
        guard let counts = step.rowCounts else {
            rowCounts = nil
            return
        }
        // C takes both lists to be of the same length.
        guard counts.count == sequences.count else {
            throw .invalid(
                op: op, what: "the row counts do not match the listed sequences", got: "\(counts.count) row counts",
                expected: "\(sequences.count), one for each sequence",
                fix: "Pass a row count for each listed sequence; 0 leaves one out.")
        }
        rowCounts = try numbers(counts, "a row count", op: op)
    }

    func withDescriptor<Value>(_ body: (UnsafePointer<mnk_cache_step>) -> Value) -> Value {
        guard let rotary else { return withDescriptor(rotary: nil, body) }
        return rotary.withDescriptor { withDescriptor(rotary: $0, body) }
    }

    private func withDescriptor<Value>(
        rotary: UnsafePointer<mnk_rotary_step>?, _ body: (UnsafePointer<mnk_cache_step>) -> Value
    ) -> Value {
        withListPointer(to: sequences) { sequences in
            withListPointer(to: rowCounts) { rowCounts in
                withListPointer(to: prefixes) { prefixes in
                    withOptionalPointer(to: results) { results in
                        withOptionalPointer(to: options) { options in
                            var complete = descriptor
                            complete.sequences = sequences
                            complete.row_counts = rowCounts
                            complete.prefixes = prefixes
                            complete.prefix_count = step.prefixes.count
                            complete.results = results
                            complete.options = options
                            complete.rotary = rotary
                            return withExtendedLifetime(step) { body(&complete) }
                        }
                    }
                }
            }
        }
    }
}
