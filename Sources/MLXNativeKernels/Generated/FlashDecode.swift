// Generated from Sources/API by generate.py: change the description instead.
#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Attends tokens of sequences, by default the newest, to all that a cache holds of them.
///
/// Row i of a sequence with `length` positions is the token at `p = length - rows + i`, or at `p = position + i` if
/// there is a position (``AttendedSequence/position``). It sees the keys at positions up to p, and newer than
/// `p - window` if there is a window:
///
///     out = sum over visible k of weight[k] * value k,      weight = softmax of the scores
///
/// ``AttentionOptions`` says what scores are. A row that sees no key, or only keys of score -infinity, is zero; scores
/// below -3.5e29 count as -infinity. What is not visible to a row is not read for it. Without a window, a row sees what
/// a ring holds up to its own position: several rows, whose keys are all stored before the first attends, see less than
/// one at a time.
///
/// Caches may be dense or quantized; queries are rotated into the domain of codes, and results back, inside. Over a
/// latent cache, key k is value k and then the rest of the key: queries are those of absorbed attention, in the order
/// of keys.
///
/// ```swift
/// let attend = FlashDecode(q, over: view, length: 13, into: out, .init(scale: 0.125, window: 1024))
/// print(try attend.plan(for: device))
/// let done = try device.encode { step in try step.encode(attend) }
/// ```
///
/// ``KernelEncoder/attend(_:over:into:_:sequence:logSumExp:)`` does this over an ``AttentionCache``, which knows its
/// lengths.
public struct FlashDecode: Sendable, Op {
    /// The memory that is attended to.
    public enum Cache: Sendable {
        /// Keys and values as numbers.
        case dense(KVCacheView)
        /// Keys and values as codes.
        case quantized(QuantizedKVCacheView)

        func descriptor(of owner: String = "", op: String) throws(KernelError) -> mnk_flash_decode_cache {
            var given = mnk_flash_decode_cache()
            switch self {
            case .dense(let dense): given.dense = try dense.descriptor(of: owner, op: op)
            case .quantized(let quantized): given.quantized = try quantized.descriptor(of: owner, op: op)
            }
            return given
        }
    }

    /// Queries of any float type; the tokens of the view are rows. A tensor is `[heads, headDim]` for one row,
    /// `[rows, heads, headDim]`, or `[sequences, rows, heads, headDim]`. With row counts it is one view of all rows, as
    /// of one sequence, and so are results.
    public var queries: HeadsView
    /// The memory that is attended to.
    public var cache: Cache
    /// One for each sequence of the queries, or any that say how many of the rows they have.
    public var sequences: [AttendedSequence]
    /// Receives the results, in any float type: `[sequences, rows, heads, headDim]` with the head dim of values,
    /// without the sequences if there is one, and without the rows if there is one of those too. This does not depend
    /// on the layout of the queries. The result of a merge has the axes of its parts after the first.
    public var output: Tensor? = nil
    /// Receives partial results instead, to merge with others; not over an attention cache. Each sequence then says
    /// where its rows are: ``AttendedSequence/position``.
    public var partials: AttentionPartials? = nil
    /// Receives the logarithm of the sum of `e^score` of each row, including a sink; `float32` with the axes of the
    /// results without the last. Negative infinity if there is nothing to sum.
    public var logSumExp: Tensor? = nil
    /// How queries attend.
    public var options: AttentionOptions = AttentionOptions()
    /// Memory for results between dispatches: `uint8`, of the scratch bytes of the plan. Without it, the device
    /// provides it.
    public var scratch: Tensor? = nil

    static var name: String { "FlashDecode" }

    /// Checks every rule and returns what would run on a device, or on an unknown GPU, without running it.
    ///
    /// To encode the plan, pass the device that will run it.
    ///
    /// - Throws: ``KernelError`` for the first broken rule.
    public func plan(for device: KernelDevice? = nil) throws(KernelError) -> Plan {
        try withDescriptor { descriptor throws(KernelError) in
            try Plan { mnk_flash_decode_make_plan(descriptor, device?.handle.pointer, $0) }
        }
    }

    func descriptor(of owner: String = "", op: String, in memory: CallMemory) throws(KernelError) -> mnk_flash_decode {
        mnk_flash_decode(
            queries: try queries.descriptor(of: "queries", op: op),
            cache: try cache.descriptor(of: "cache", op: op),
            sequences: try memory.keep(
                sequences.map { (one) throws(KernelError) in try one.descriptor(of: "", op: op) }),
            sequence_count: sequences.count,
            results: AttentionResults(output: output, partials: partials, logSumExp: logSumExp).descriptor,
            options: try options.descriptor(of: "options", op: op),
            scratch: scratch?.handle.pointer)
    }
}

extension FlashDecode {
    /// Attention of rows of several sequences. Partials need the position of each sequence's rows.
    public init(
        _ queries: some HeadsViewConvertible, over cache: Cache, sequences: [AttendedSequence],
        into output: Tensor? = nil, _ options: AttentionOptions = AttentionOptions(),
        intoPartials partials: AttentionPartials? = nil, logSumExp: Tensor? = nil
    ) {
        self.queries = queries.headsView
        self.cache = cache
        self.sequences = sequences
        self.output = output
        self.options = options
        self.partials = partials
        self.logSumExp = logSumExp
    }
}

extension KernelEncoder {
    /// Records a ``FlashDecode``.
    ///
    /// - Throws: ``KernelError`` for the first broken rule; nothing is recorded then.
    public func encode(_ op: FlashDecode) throws(KernelError) {
        try op.withDescriptor { descriptor throws(KernelError) in
            try record { mnk_encoder_flash_decode($0, descriptor, $1) }
        }
    }
}

/// Finishes attention whose keys were attended to in parts, on one device or on several: the result is that of
/// ``FlashDecode`` over all keys at once. With the parts j of a row and their stats (rowMax, rowSum):
///
///     top = max over j of rowMax[j],   w[j] = 2^(rowMax[j] - top)
///     out = sum over j of w[j] * sums[j]  /  (sum over j of w[j] * rowSum[j] + 2^(sink * log2(e) - top))
///
/// ```swift
/// let merge = MergePartials(parts, into: out)      // parts: sums [parts, heads, headDim], stats [parts, heads, 2]
/// let done = try device.encode { step in try step.encode(merge) }
/// ```
public struct MergePartials: Sendable, Op {
    /// What is merged, with an axis of parts before those that ``FlashDecode`` writes; at most 1024 parts.
    public var parts: AttentionPartials
    /// A score for each head that takes part in the softmax and adds no value, `float32` `[heads]`; not if results are
    /// partials again.
    public var sinks: Tensor? = nil
    /// Receives the results, in any float type: `[sequences, rows, heads, headDim]` with the head dim of values,
    /// without the sequences if there is one, and without the rows if there is one of those too. This does not depend
    /// on the layout of the queries. The result of a merge has the axes of its parts after the first.
    public var output: Tensor? = nil
    /// Receives partial results instead, to merge with others; not over an attention cache. Each sequence then says
    /// where its rows are: ``AttendedSequence/position``.
    public var partials: AttentionPartials? = nil
    /// Receives the logarithm of the sum of `e^score` of each row, including a sink; `float32` with the axes of the
    /// results without the last. Negative infinity if there is nothing to sum.
    public var logSumExp: Tensor? = nil

    static var name: String { "MergePartials" }

    /// Checks every rule and returns what would run, without running it.
    ///
    /// - Throws: ``KernelError`` for the first broken rule.
    public func plan() throws(KernelError) -> Plan {
        try withDescriptor { descriptor throws(KernelError) in
            try Plan { mnk_merge_partials_make_plan(descriptor, $0) }
        }
    }

    func descriptor(of owner: String = "", op: String, in memory: CallMemory) throws(KernelError) -> mnk_merge_partials
    {
        mnk_merge_partials(
            parts: parts.descriptor,
            sinks: sinks?.handle.pointer,
            results: AttentionResults(output: output, partials: partials, logSumExp: logSumExp).descriptor)
    }
}

extension MergePartials {
    /// A merge. It is checked when it is used.
    public init(
        _ parts: AttentionPartials, into output: Tensor? = nil, sinks: Tensor? = nil,
        intoPartials partials: AttentionPartials? = nil, logSumExp: Tensor? = nil
    ) {
        self.parts = parts
        self.output = output
        self.sinks = sinks
        self.partials = partials
        self.logSumExp = logSumExp
    }
}

extension KernelEncoder {
    /// Records a ``MergePartials``.
    ///
    /// - Throws: ``KernelError`` for the first broken rule; nothing is recorded then.
    public func encode(_ op: MergePartials) throws(KernelError) {
        try op.withDescriptor { descriptor throws(KernelError) in
            try record { mnk_encoder_merge_partials($0, descriptor, $1) }
        }
    }
}
