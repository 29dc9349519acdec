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
        let memory = CallMemory()
        defer { withExtendedLifetime(memory) {} }
        var given = try step.descriptor(op: op, in: memory)
        let cache = step.cache.handle.pointer
        try record { encoder, error in body(encoder, cache, &given, error) }
        withExtendedLifetime(step) {}
    }
}

extension CacheStep {
    fileprivate borrowing func descriptor(op: String, in memory: CallMemory) throws(KernelError) -> mnk_cache_step {
        let queries = try queries?.descriptor(of: "queries", op: op) ?? mnk_heads_view()
        let keys = try keys?.descriptor(of: "keys", op: op) ?? mnk_heads_view()
        let values = try values?.descriptor(of: "values", op: op) ?? mnk_heads_view()
        let rows = try ListedRows(of: cache, sequences, rowCounts: rowCounts, op: op, in: memory)
        return mnk_cache_step(
            queries: queries, keys: keys, values: values,
            sequences: rows.sequences, row_counts: rows.rowCounts, sequence_count: rows.count,
            results: results?.descriptor ?? mnk_attention_results(),
            options: try options?.descriptor(op: op) ?? mnk_attention_options(), has_rotary: rotary != nil,
            rotary: try rotary?.descriptor(op: op, in: memory) ?? mnk_rotary_step(),
            prefixes: memory.keep(try prefixes.map { (prefix) throws(KernelError) in try prefix.descriptor(op: op) }),
            prefix_count: prefixes.count)
    }
}

/// The sequences of a cache that tokens continue, with the number of tokens of each, in the types of the C API.
struct ListedRows {
    let sequences, rowCounts: UnsafePointer<UInt32>?
    let count: Int

    /// - Parameters:
    ///   - sequences: `nil` means the only sequence of the cache.
    ///   - rowCounts: `nil` means the same number for each.
    init(
        of cache: AttentionCache, _ sequences: [Int]?, rowCounts: [Int]?, op: String, in memory: CallMemory
    ) throws(KernelError) {
        // C takes both lists to be of the same length, which is 1 without sequences.
        let length = sequences?.count ?? 1
        if let rowCounts, rowCounts.count != length {
            throw .invalid(
                op: op, what: "the row counts do not match the listed sequences", got: "\(rowCounts.count) row counts",
                expected: "\(length), one for each sequence",
                fix: "Pass a row count for each listed sequence; 0 leaves one out.")
        }
        self.sequences = try memory.keep(sequences) { (sequence) throws(KernelError) in
            try cache.number(ofSequence: sequence, op: op)
        }
        self.rowCounts = try memory.keep(rowCounts) { (rows) throws(KernelError) in
            try UInt32(rows, "a row count", op: op)
        }
        count = sequences?.count ?? 0
    }
}
