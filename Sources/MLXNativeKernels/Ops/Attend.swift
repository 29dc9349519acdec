#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension KernelEncoder {
    /// Attends queries, the newest tokens of a sequence, to all that a cache holds of it.
    ///
    /// Attention sees tokens appended earlier in the same step, so append the queries' own keys and values first:
    ///
    /// ```swift
    /// let done = try device.encode { step in
    ///     try step.append(keys: k, values: v, to: cache)
    ///     try step.attend(q, over: cache, into: out, .init(window: 1024))
    /// }
    /// ```
    ///
    /// Attention with rows over a sequence without tokens throws. So does an append after causal attention over a sequence to which
    /// the step had not appended before: the attention was without these tokens. Reading a sequence as a prefix does not
    /// count.
    ///
    /// With a window, a row that would see a position that a ring has overwritten is an error. Without one a row sees
    /// what the ring holds up to its own position. Several rows in one step then see less than the same rows one at a
    /// time, because all of their keys are stored before the first attends;
    /// ``appendAndAttend(queries:keys:values:rotary:over:into:_:sequence:logSumExp:)`` gives the results of one at a
    /// time. Attention that is not causal sees all that the ring still holds, with any number of rows.
    ///
    /// - Parameters:
    ///   - queries: `[heads, headDim]` for one row, `[rows, heads, headDim]`, or a view of another layout; any float type.
    ///     The heads are a multiple of the cache's.
    ///   - cache: A dense or a quantized cache.
    ///   - output: Receives the results, in any float type: `[rows, heads, valueHeadDim]`, or without the rows for one
    ///     row, whatever the layout of the queries. Its memory must not overlap that of the queries.
    ///   - options: How queries attend.
    ///   - sequence: Which of the cache's sequences the queries continue; `nil` means the only one.
    ///   - logSumExp: Receives the logarithm of the sum of `e^score` of each row, including a sink; `float32`, the
    ///     shape of the results without its last axis.
    /// - Throws: ``KernelError`` if shapes do not fit, if the sequence is unknown, empty or suspect, if the cache has
    ///   several sequences and none is named, or if a window reaches positions that the ring has overwritten.
    public func attend(
        _ queries: some HeadsViewConvertible, over cache: AttentionCache, into output: Tensor,
        _ options: AttentionOptions = AttentionOptions(), sequence: Int? = nil, logSumExp: Tensor? = nil
    ) throws(KernelError) {
        try attend(
            queries, over: cache, AttentionResults(output: output, logSumExp: logSumExp), options,
            listed: sequence.map { [$0] })
    }

    /// Attends rows of several sequences, in the order of the list.
    ///
    /// Lists mean what they mean in ``append(keys:values:to:sequences:rowCounts:)``, so that one list serves both
    /// calls: if a sequence is listed again, the rows of its earlier entry are the older tokens. All sequences attend
    /// in the same dispatch, even if row counts differ.
    ///
    /// - Parameters:
    ///   - queries: `[sequences.count, rows, heads, headDim]`, `[sequences.count, heads, headDim]` for one row of each, or,
    ///     with row counts, the rows of all sequences one after another; any float type.
    ///   - cache: A dense or a quantized cache.
    ///   - sequences: Which of the cache's sequences the queries continue.
    ///   - rowCounts: How many rows each listed sequence has; 0 leaves one out. `nil` means one row for each, or those
    ///     that `queries` has for each of its sequences.
    ///   - prefixes: Sequences whose tokens come before those of every listed sequence, the oldest first, such as a prompt
    ///     that conversations share (<doc:BatchingSequences>). Causality, windows and slopes are those of one sequence
    ///     with all tokens.
    ///   - output: Receives the results, in any float type: the axes of token-major queries with the cache's
    ///     `valueHeadDim`. Its memory must not overlap that of the queries.
    ///   - options: How queries attend. A mask needs the same number of rows for each sequence, and no prefixes.
    ///   - logSumExp: Receives the logarithm of the sum of `e^score` of each row, including a sink; `float32`, the
    ///     shape of the results without its last axis.
    /// - Throws: ``KernelError`` if shapes or counts do not fit, if a sequence is unknown, empty or suspect, or if a window
    ///   reaches positions that a ring has overwritten.
    public func attend(
        _ queries: some HeadsViewConvertible, over cache: AttentionCache, sequences: [Int], rowCounts: [Int]? = nil,
        after prefixes: [CachePrefix] = [], into output: Tensor, _ options: AttentionOptions = AttentionOptions(),
        logSumExp: Tensor? = nil
    ) throws(KernelError) {
        try attend(
            queries, over: cache, AttentionResults(output: output, logSumExp: logSumExp), options,
            listed: sequences, rowCounts: rowCounts, after: prefixes)
    }

    /// Appends any number of tokens and attends with their queries, in chunks that a ring can serve.
    ///
    /// Gives the same results as appending and attending one token at a time, so a prompt of any length goes through a
    /// small ring in one call:
    ///
    /// ```swift
    /// let cache = try AttentionCache(
    ///     .init(kvHeads: 8, headDim: 128), slidingWindow: .init(window: 1024, maxRows: 64), on: device)
    /// let done = try device.encode { step in
    ///     try step.appendAndAttend(queries: q, keys: k, values: v, over: cache, into: out)
    /// }
    /// ```
    ///
    /// A window, here that of the cache, makes chunks long. Without one a full ring takes one token at a time.
    ///
    /// With `rotary`, keys and queries are rotated in the dispatch that stores the keys, so that a layer of a model
    /// takes two dispatches, or three if a separate dispatch merges the splits. The bytes in the cache are those of
    /// ``rotate(_:_:layout:positions:offsets:with:)`` and ``append(keys:values:to:sequence:)``.
    ///
    /// - Parameters:
    ///   - queries: `[tokens, heads, headDim]`, `[heads, headDim]` for one token, or a view of another layout; any float
    ///     type.
    ///   - keys: The same tokens with the cache's heads.
    ///   - values: The same tokens with the cache's heads and `valueHeadDim`, in the element type of the keys.
    ///   - rotary: How queries and keys are rotated; the tensors do not change. `nil` means no rotation.
    ///   - cache: A dense or a quantized cache.
    ///   - output: Receives the results, in any float type: `[tokens, heads, valueHeadDim]`, or without the tokens for
    ///     one. Its memory must not overlap that of queries, keys and values.
    ///   - options: How queries attend. A mask, or attention that is not causal, is possible only if the tokens fit
    ///     in one chunk.
    ///   - sequence: Which of the cache's sequences the tokens continue; `nil` means the only one.
    ///   - logSumExp: Receives the logarithm of the sum of `e^score` of each row, including a sink; `float32`, the
    ///     shape of the results without its last axis.
    /// - Throws: ``KernelError`` if shapes do not fit, if the sequence is unknown or suspect, or if the cache is full and
    ///   does not overwrite; nothing is recorded then.
    public func appendAndAttend(
        queries: some HeadsViewConvertible, keys: some HeadsViewConvertible, values: some HeadsViewConvertible,
        rotary: RotaryStep? = nil, over cache: AttentionCache, into output: Tensor,
        _ options: AttentionOptions = AttentionOptions(), sequence: Int? = nil, logSumExp: Tensor? = nil
    ) throws(KernelError) {
        let step = CacheStep(
            queries: queries.headsView, keys: keys.headsView, values: values.headsView, cache: cache,
            sequences: sequence.map { [$0] }, results: AttentionResults(output: output, logSumExp: logSumExp),
            options: options, rotary: rotary)
        try record(step, op: "AttentionCache.appendAndAttend", mnk_encoder_append_and_attend)
    }

    /// Appends tokens of several sequences and attends with their queries, in the order of the list.
    ///
    /// Lists mean what they mean in ``append(keys:values:to:sequences:rowCounts:)``. Sequences are stored and attend
    /// together, or, if a ring must serve one in chunks, one after another.
    ///
    /// - Parameters:
    ///   - queries: `[sequences.count, rows, heads, headDim]`, `[sequences.count, heads, headDim]` for one row of each, or,
    ///     with row counts, the rows of all sequences one after another; any float type.
    ///   - keys: The same tokens with the cache's heads.
    ///   - values: The same tokens with the cache's heads and `valueHeadDim`, in the element type of the keys.
    ///   - rotary: How queries and keys are rotated. A list entry counts as a sequence of positions and offsets; offsets need the
    ///     same number of rows for each.
    ///   - cache: A dense or a quantized cache.
    ///   - sequences: Which of the cache's sequences the tokens continue; at least one.
    ///   - rowCounts: How many rows each listed sequence has; `nil` means one row for each, or those that `keys` has for
    ///     each of its sequences.
    ///   - prefixes: Sequences whose tokens come before those of every listed sequence, the oldest first, such as a prompt
    ///     that conversations share (<doc:BatchingSequences>). Without positions in `rotary`, tokens are rotated by
    ///     their positions after them.
    ///   - output: Receives the results, in any float type: the axes of token-major queries with the cache's
    ///     `valueHeadDim`. Its memory must not overlap that of the queries.
    ///   - options: How queries attend. A mask needs the same number of rows for each sequence, which attend at once.
    ///   - logSumExp: Receives the logarithm of the sum of `e^score` of each row, including a sink; `float32`, the
    ///     shape of the results without its last axis.
    /// - Throws: ``KernelError`` if shapes or counts do not fit, if a sequence is unknown or suspect, or if the cache is
    ///   full and does not overwrite; nothing is recorded then.
    public func appendAndAttend(
        queries: some HeadsViewConvertible, keys: some HeadsViewConvertible, values: some HeadsViewConvertible,
        rotary: RotaryStep? = nil, over cache: AttentionCache, sequences: [Int], rowCounts: [Int]? = nil,
        after prefixes: [CachePrefix] = [], into output: Tensor, _ options: AttentionOptions = AttentionOptions(),
        logSumExp: Tensor? = nil
    ) throws(KernelError) {
        let step = CacheStep(
            queries: queries.headsView, keys: keys.headsView, values: values.headsView, cache: cache,
            sequences: sequences, rowCounts: rowCounts,
            results: AttentionResults(output: output, logSumExp: logSumExp), options: options, rotary: rotary,
            prefixes: prefixes)
        try record(step, op: "AttentionCache.appendAndAttend", mnk_encoder_append_and_attend)
    }

    private func attend(
        _ queries: some HeadsViewConvertible, over cache: AttentionCache, _ results: AttentionResults,
        _ options: AttentionOptions, listed sequences: [Int]?, rowCounts: [Int]? = nil,
        after prefixes: [CachePrefix] = []
    ) throws(KernelError) {
        let step = CacheStep(
            queries: queries.headsView, cache: cache, sequences: sequences, rowCounts: rowCounts, results: results,
            options: options, prefixes: prefixes)
        try record(step, op: "AttentionCache.attend", mnk_encoder_attend)
    }
}
