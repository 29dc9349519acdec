#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Attends tokens of sequences, by default the newest, to all that a cache holds of them.
///
/// Row i of a sequence with `length` positions is the token at `p = length - rows + i`, or at `p = position + i` if the
/// sequence has a ``AttendedSequence/position``. It sees the keys at positions
/// up to p, and newer than `p - window` if there is a window:
///
///     out = sum over visible k of weight[k] * value k,      weight = softmax of the scores
///
/// ``AttentionOptions`` says what scores are. A row that sees no key is zero. What is not visible to a row is not read
/// for it. Caches may be dense or quantized; queries are rotated into the domain of codes, and results back, inside.
///
/// ```swift
/// let attend = FlashDecode(q, over: view, length: 13, into: out, .init(scale: 0.125, window: 1024))
/// print(try attend.plan(for: device))
/// let done = try device.encode { step in try step.encode(attend) }
/// ```
///
/// ``KernelEncoder/attend(_:over:into:_:sequence:logSumExp:)`` does this over an ``AttentionCache``, which knows its
/// lengths.
public struct FlashDecode: Sendable {
    /// The memory that is attended to.
    public enum Cache: Sendable {
        /// Keys and values as numbers.
        case dense(KVCacheView)
        /// Keys and values as codes.
        case quantized(QuantizedKVCacheView)
    }

    /// Queries of any float type; the tokens of the view are rows. A tensor is `[heads, headDim]` for one row,
    /// `[rows, heads, headDim]`, or `[sequences, rows, heads, headDim]`.
    public var queries: HeadsView
    /// The memory that is attended to.
    public var cache: Cache
    /// One for each sequence of the queries.
    public var sequences: [AttendedSequence]
    /// Receives the results, in any float type: `[sequences, rows, heads, valueHeadDim]`, without the sequences if
    /// there is one, and without the rows if there is one of those too. This does not depend on the layout of the
    /// queries.
    public var output: Tensor?
    /// Receives partial results instead, if the cache holds only a part of the keys. Each sequence then says where its
    /// rows are: ``AttendedSequence/position``.
    public var partials: AttentionPartials?
    /// Receives the logarithm of the sum of `e^score` of each row, including a sink; `float32` with the axes of the
    /// results without the last. Negative infinity if there is nothing to sum.
    public var logSumExp: Tensor?
    /// How queries attend.
    public var options: AttentionOptions
    /// Memory for results between dispatches: `uint8`, of the plan's ``Plan/scratchBytes``. Without it, the
    /// device provides it.
    public var scratch: Tensor?

    /// Attention of one sequence's newest rows. A cache of several sequences needs the sequence.
    public init(
        _ queries: some HeadsViewConvertible, over view: KVCacheView, sequence: Int? = nil, length: Int,
        into output: Tensor? = nil, _ options: AttentionOptions = AttentionOptions(), logSumExp: Tensor? = nil
    ) {
        self.init(
            queries, over: .dense(view), sequences: [AttendedSequence(sequence, length: length)], into: output, options,
            logSumExp: logSumExp)
    }

    /// Attention of one sequence's newest rows over a quantized cache. If it has several sequences, it needs the sequence.
    public init(
        _ queries: some HeadsViewConvertible, over view: QuantizedKVCacheView, sequence: Int? = nil, length: Int,
        into output: Tensor? = nil, _ options: AttentionOptions = AttentionOptions(), logSumExp: Tensor? = nil
    ) {
        self.init(
            queries, over: .quantized(view), sequences: [AttendedSequence(sequence, length: length)], into: output,
            options, logSumExp: logSumExp)
    }

    /// Attention of rows of several sequences. Partials need the position of each sequence's rows.
    public init(
        _ queries: some HeadsViewConvertible, over cache: Cache, sequences: [AttendedSequence],
        into output: Tensor? = nil,
        _ options: AttentionOptions = AttentionOptions(), intoPartials partials: AttentionPartials? = nil,
        logSumExp: Tensor? = nil
    ) {
        self.queries = queries.headsView
        self.cache = cache
        self.sequences = sequences
        self.output = output
        self.options = options
        self.partials = partials
        self.logSumExp = logSumExp
    }

    /// Checks every rule and returns what would run on a device, or on an unknown GPU, without running it.
    ///
    /// To encode the plan, pass the device that will run it.
    ///
    /// - Throws: ``KernelError`` for the first broken rule.
    public func plan(for device: KernelDevice? = nil) throws(KernelError) -> Plan {
        let operands = try Operands(self)
        return try Plan { error in
            operands.withDescriptor { mnk_flash_decode_make_plan($0, device?.handle.pointer, error) }
        }
    }
}

extension KernelEncoder {
    /// Records a ``FlashDecode``.
    ///
    /// - Throws: ``KernelError`` for the first broken rule; nothing is recorded then.
    public func encode(_ op: FlashDecode) throws(KernelError) {
        let operands = try Operands(op)
        try record { encoder, error in
            operands.withDescriptor { mnk_encoder_flash_decode(encoder, $0, error) }
        }
    }
}

/// The op in the types of the C API.
private struct Operands {
    private let op: FlashDecode
    private let queries: mnk_heads_view
    private var dense: mnk_kv_cache_view?
    private var quantized: mnk_quantized_kv_cache_view?
    private var sequences: [mnk_attended_sequence] = []
    private let results: mnk_attention_results
    private let options: mnk_attention_options

    init(_ op: FlashDecode) throws(KernelError) {
        let name = "FlashDecode"
        self.op = op
        queries = try op.queries.descriptor(of: "queries", op: name)
        switch op.cache {
        case .dense(let view): dense = try view.descriptor(op: name)
        case .quantized(let view): quantized = try view.descriptor(op: name)
        }
        for attended in op.sequences { sequences.append(try attended.descriptor(op: name)) }
        results =
            AttentionResults(output: op.output, partials: op.partials, logSumExp: op.logSumExp).descriptor
        options = try op.options.descriptor(op: name)
    }

    func withDescriptor<Value>(_ body: (UnsafePointer<mnk_flash_decode>) -> Value) -> Value {
        withOptionalPointer(to: dense) { dense in
            withOptionalPointer(to: quantized) { quantized in
                sequences.withUnsafeBufferPointer { sequences in
                    withUnsafePointer(to: results) { results in
                        withUnsafePointer(to: options) { options in
                            withUnsafePointer(to: queries) { queries in
                                var complete = mnk_flash_decode(
                                    queries: nil,
                                    dense: dense,
                                    quantized: quantized,
                                    sequences: sequences.baseAddress,
                                    sequence_count: sequences.count,
                                    results: results,
                                    options: options,
                                    scratch: op.scratch?.handle.pointer,
                                    queries_view: queries)
                                return withExtendedLifetime(op) { body(&complete) }
                            }
                        }
                    }
                }
            }
        }
    }
}
