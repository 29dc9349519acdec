#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Tokens of sequences of a cache, to append, to attend, or both.
///
/// Not copyable, like the operands made of it, because each copy would retain every tensor of the step.
struct CacheStep: ~Copyable {
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
        _ step: borrowing CacheStep, op: String,
        _ body: (OpaquePointer, OpaquePointer, UnsafePointer<mnk_cache_step>, ErrorOut) -> Bool
    ) throws(KernelError) {
        let operands = try Operands(step, op: op)
        let cache = step.cache.handle.pointer
        try record { encoder, error in operands.withDescriptor { body(encoder, cache, $0, error) } }
        withExtendedLifetime(step) {}
    }
}

/// A step in the types of the C API. The step must outlive it.
private struct Operands: ~Copyable {
    private let descriptor: mnk_cache_step
    private let rows: ListedRows
    private let results: mnk_attention_results?
    private let options: mnk_attention_options?
    private let rotary: RotaryStepOperands?
    private let prefixes: [mnk_cache_prefix]

    init(_ step: borrowing CacheStep, op: String) throws(KernelError) {
        var descriptor = mnk_cache_step()
        if let queries = step.queries { descriptor.queries = try queries.descriptor(of: "queries", op: op) }
        if let keys = step.keys { descriptor.keys = try keys.descriptor(of: "keys", op: op) }
        if let values = step.values { descriptor.values = try values.descriptor(of: "values", op: op) }
        let options = try step.options?.descriptor(op: op)
        let prefixes = try step.prefixes.map { (prefix) throws(KernelError) in try prefix.descriptor(op: op) }
        let rows = try ListedRows(of: step.cache, step.sequences, rowCounts: step.rowCounts, op: op)
        rotary = if let rotary = step.rotary { try RotaryStepOperands(rotary, op: op) } else { nil }
        self.descriptor = descriptor
        self.rows = rows
        results = step.results?.descriptor
        self.options = options
        self.prefixes = prefixes
    }

    func withDescriptor<Value>(_ body: (UnsafePointer<mnk_cache_step>) -> Value) -> Value {
        switch rotary {
        case .some(let rotary): rotary.withDescriptor { withDescriptor(rotary: $0, body) }
        case .none: withDescriptor(rotary: nil, body)
        }
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
                        return body(&complete)
                    }
                }
            }
        }
    }
}

/// The sequences of a cache that tokens continue, with the number of tokens of each, in the types of the C API.
struct ListedRows: ~Copyable {
    private let sequences: [UInt32]?
    private let rowCounts: [UInt32]?

    /// - Parameters:
    ///   - sequences: `nil` means the only sequence of the cache.
    ///   - rowCounts: `nil` means the same number for each.
    init(of cache: AttentionCache, _ sequences: [Int]?, rowCounts: [Int]?, op: String) throws(KernelError) {
        let listed = try sequences?.map { (sequence) throws(KernelError) in
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
        self.sequences = listed
    }

    func withPointers<Value>(_ body: (UnsafePointer<UInt32>?, UnsafePointer<UInt32>?, Int) -> Value) -> Value {
        withListPointer(to: sequences) { listed in
            withListPointer(to: rowCounts) { body(listed, $0, sequences?.count ?? 0) }
        }
    }
}
