extension FlashDecode {
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

extension KVCacheWrite {
    /// A write of consecutive tokens, the first at `position`. A cache of several sequences needs the sequence.
    public init(
        keys: some HeadsViewConvertible, values: (any HeadsViewConvertible)? = nil, into destination: KVCacheView,
        at position: Int, sequence: Int? = nil,
        sourceLayout: KVLayout = .tokenMajor, sourceOffset: Int = 0, tokens: Int? = nil, sourceIsRing: Bool = false
    ) {
        self.keys = keys.headsView
        self.values = values?.headsView
        self.destination = destination
        self.position = position
        self.sequence = sequence
        self.sourceLayout = sourceLayout
        self.sourceOffset = sourceOffset
        self.tokens = tokens
        self.sourceIsRing = sourceIsRing
    }

    /// A write where each source token goes to its own sequence and position.
    public init(
        keys: some HeadsViewConvertible, values: (any HeadsViewConvertible)? = nil, into destination: KVCacheView,
        rows: Rows,
        sourceLayout: KVLayout = .tokenMajor, sourceOffset: Int = 0, tokens: Int? = nil
    ) {
        self.keys = keys.headsView
        self.values = values?.headsView
        self.destination = destination
        self.rows = rows
        self.sourceLayout = sourceLayout
        self.sourceOffset = sourceOffset
        self.tokens = tokens
    }
}

extension KVCacheQuantize {
    /// Stores consecutive tokens, the first at `position`. A cache of several sequences needs the sequence.
    public init(
        keys: some HeadsViewConvertible, values: (any HeadsViewConvertible)? = nil,
        into destination: QuantizedKVCacheView, at position: Int,
        sequence: Int? = nil, sourceLayout: KVLayout = .tokenMajor, sourceOffset: Int = 0, tokens: Int? = nil,
        sourceIsRing: Bool = false, options: KVQuantizeOptions = KVQuantizeOptions(), counts: Tensor? = nil,
        probe: Tensor? = nil
    ) {
        self.keys = keys.headsView
        self.values = values?.headsView
        self.destination = destination
        self.position = position
        self.sequence = sequence
        self.sourceLayout = sourceLayout
        self.sourceOffset = sourceOffset
        self.tokens = tokens
        self.sourceIsRing = sourceIsRing
        self.options = options
        self.counts = counts
        self.probe = probe
    }

    /// Stores each source token at its own sequence and position.
    public init(
        keys: some HeadsViewConvertible, values: (any HeadsViewConvertible)? = nil,
        into destination: QuantizedKVCacheView, rows: KVCacheWrite.Rows,
        sourceLayout: KVLayout = .tokenMajor, sourceOffset: Int = 0, tokens: Int? = nil,
        options: KVQuantizeOptions = KVQuantizeOptions(), counts: Tensor? = nil
    ) {
        self.keys = keys.headsView
        self.values = values?.headsView
        self.destination = destination
        self.rows = rows
        self.sourceLayout = sourceLayout
        self.sourceOffset = sourceOffset
        self.tokens = tokens
        self.options = options
        self.counts = counts
    }
}

extension KVCacheDequantize {
    /// Reads consecutive tokens, the first at `position`. A cache of several sequences needs the sequence.
    public init(
        keys: Tensor? = nil, values: Tensor? = nil, from source: QuantizedKVCacheView, at position: Int,
        sequence: Int? = nil, layout: KVLayout = .tokenMajor, domain: KVDomain = .original
    ) {
        self.keys = keys
        self.values = values
        self.source = source
        self.position = position
        self.sequence = sequence
        self.layout = layout
        self.domain = domain
    }
}
