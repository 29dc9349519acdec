#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Tokens of sequences of a cache, to append, to attend, or both.
struct CacheStep {
    var queries: HeadsView?
    var keys: HeadsView?
    var values: HeadsView?
    var cache: AttentionCache
    /// `nil` means the only sequence of the cache.
    var sequences: [Int]?
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
        _ body: (OpaquePointer, OpaquePointer, UnsafePointer<mnk_cache_step>, ErrorOut) -> Bool
    ) throws(KernelError) {
        let operands = try Operands(step, op: op)
        try record { encoder, error in
            operands.withDescriptor { body(encoder, step.cache.handle.pointer, $0, error) }
        }
    }
}

/// The step in the types of the C API.
private struct Operands {
    private let step: CacheStep
    private let descriptor: mnk_cache_step
    private let rows: ListedRows
    private let results: mnk_attention_results?
    private let options: mnk_attention_options?
    private let rotary: RotaryStepOperands?
    private var prefixes: [mnk_cache_prefix] = []

    init(_ step: CacheStep, op: String) throws(KernelError) {
        self.step = step
        var descriptor = mnk_cache_step()
        if let queries = step.queries { descriptor.queries = try queries.descriptor("queries", op: op) }
        if let keys = step.keys { descriptor.keys = try keys.descriptor("keys", op: op) }
        if let values = step.values { descriptor.values = try values.descriptor("values", op: op) }
        self.descriptor = descriptor
        rows = try ListedRows(of: step.cache, step.sequences, rowCounts: step.rowCounts, op: op)
        results = step.results?.descriptor
        options = try step.options?.descriptor(op: op)
        rotary = if let rotary = step.rotary { try RotaryStepOperands(rotary, op: op) } else { nil }
        for prefix in step.prefixes { prefixes.append(try prefix.descriptor(op: op)) }
    }

    func withDescriptor<Value>(_ body: (UnsafePointer<mnk_cache_step>) -> Value) -> Value {
        guard let rotary else { return withDescriptor(rotary: nil, body) }
        return rotary.withDescriptor { withDescriptor(rotary: $0, body) }
    }

    private func withDescriptor<Value>(
        rotary: UnsafePointer<mnk_rotary_step>?, _ body: (UnsafePointer<mnk_cache_step>) -> Value
    ) -> Value {
        rows.withPointers { sequences, rowCounts, count in
            prefixes.withUnsafeBufferPointer { prefixes in
                withOptionalPointer(to: results) { results in
                    withOptionalPointer(to: options) { options in
                        var complete = descriptor
                        complete.sequences = sequences
                        complete.row_counts = rowCounts
                        complete.sequence_count = count
                        complete.prefixes = prefixes.listAddress
                        complete.prefix_count = prefixes.count
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

/// The sequences of a cache that tokens continue, with the number of tokens of each, in the types of the C API.
struct ListedRows {
    private let sequences: [UInt32]?
    private let rowCounts: [UInt32]?

    /// - Parameters:
    ///   - sequences: `nil` means the only sequence of the cache.
    ///   - rowCounts: `nil` means the same number for each.
    init(of cache: AttentionCache, _ sequences: [Int]?, rowCounts: [Int]?, op: String) throws(KernelError) {
        self.sequences = try sequences?.map { (sequence) throws(KernelError) in
            try cache.number(ofSequence: sequence, op: op)
        }
        // C takes both lists to be of the same length, which is 1 without sequences.
        let count = sequences?.count ?? 1
        if let rowCounts, rowCounts.count != count {
            throw .invalid(
                op: op, what: "the row counts do not match the listed sequences", got: "\(rowCounts.count) row counts",
                expected: "\(count), one for each sequence",
                fix: "Pass a row count for each listed sequence; 0 leaves one out.")
        }
        self.rowCounts = if let rowCounts { try numbers(rowCounts, "a row count", op: op) } else { nil }
    }

    func withPointers<Value>(_ body: (UnsafePointer<UInt32>?, UnsafePointer<UInt32>?, Int) -> Value) -> Value {
        withListPointer(to: sequences) { listed in
            withListPointer(to: rowCounts) { body(listed, $0, sequences?.count ?? 0) }
        }
    }
}
