#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension KernelEncoder {
    /// Attends queries, the newest tokens of a sequence, to all that a cache holds of it.
    ///
    /// What the same step has appended counts, so keys and values of the queries' tokens are appended first:
    ///
    /// ```swift
    /// let done = try device.encode { step in
    ///     try step.append(keys: k, values: v, to: cache)
    ///     try step.attend(q, over: cache, into: out, .init(window: 1024, softcap: 50))
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - queries: `[heads, headDim]` for one row, or `[rows, heads, headDim]`; any float type. The heads are a multiple
    ///     of the cache's.
    ///   - cache: A dense or a quantized cache.
    ///   - output: Gets the results, in any float type: the queries' shape with the cache's `valueHeadDim`.
    ///   - options: How queries attend.
    ///   - sequence: Which of the cache's sequences the queries continue.
    ///   - logSumExp: Gets the logarithm of the sum of `e^score` of each row, a sink's included; `float32`, the queries'
    ///     shape without its last axis.
    /// - Throws: ``KernelError`` where shapes do not fit, where the sequence is unknown or suspect, or where its ring
    ///   lost positions that rows would see.
    public func attend(
        _ queries: Tensor, over cache: AttentionCache, into output: Tensor,
        _ options: AttentionOptions = AttentionOptions(), sequence: Int = 0, logSumExp: Tensor? = nil
    ) throws(KernelError) {
        try attend(
            queries, over: cache, AttentionResults(output: output, logSumExp: logSumExp), options, sequence: sequence)
    }

    /// Attends as many rows of each listed sequence.
    ///
    /// - Parameters:
    ///   - queries: `[sequences.count, rows, heads, headDim]`, or `[sequences.count, heads, headDim]` for one row of each,
    ///     in the order of the list; any float type.
    ///   - cache: A dense or a quantized cache.
    ///   - sequences: Which of the cache's sequences the queries continue.
    ///   - output: Gets the results, in any float type: the queries' shape with the cache's `valueHeadDim`.
    ///   - options: How queries attend.
    ///   - logSumExp: Gets the logarithm of the sum of `e^score` of each row, a sink's included; `float32`, the queries'
    ///     shape without its last axis.
    /// - Throws: ``KernelError`` where shapes do not fit, where a sequence is unknown or suspect, or where its ring lost
    ///   positions that rows would see.
    public func attend(
        _ queries: Tensor, over cache: AttentionCache, sequences: [Int], into output: Tensor,
        _ options: AttentionOptions = AttentionOptions(), logSumExp: Tensor? = nil
    ) throws(KernelError) {
        try attend(
            queries, over: cache, AttentionResults(output: output, logSumExp: logSumExp), options, sequences: sequences)
    }

    /// Attends queries to what a cache holds as a part of all keys; ``MergePartials`` finishes.
    ///
    /// - Parameters:
    ///   - queries: `[heads, headDim]` for one row, or `[rows, heads, headDim]`; any float type.
    ///   - cache: A dense or a quantized cache.
    ///   - partials: Gets the part.
    ///   - options: How queries attend; sinks belong to the merge.
    ///   - sequence: Which of the cache's sequences the queries continue.
    ///   - logSumExp: Gets the logarithm of the sum of `e^score` of each row, `float32`.
    /// - Throws: ``KernelError`` as for results.
    public func attend(
        _ queries: Tensor, over cache: AttentionCache, intoPartials partials: AttentionPartials,
        _ options: AttentionOptions = AttentionOptions(), sequence: Int = 0, logSumExp: Tensor? = nil
    ) throws(KernelError) {
        try attend(
            queries, over: cache, AttentionResults(partials: partials, logSumExp: logSumExp), options,
            sequence: sequence)
    }

    /// Attends as many rows of each listed sequence to what a cache holds as a part of all keys.
    ///
    /// - Parameters:
    ///   - queries: `[sequences.count, rows, heads, headDim]`, or `[sequences.count, heads, headDim]` for one row of each.
    ///   - cache: A dense or a quantized cache.
    ///   - sequences: Which of the cache's sequences the queries continue.
    ///   - partials: Gets the part.
    ///   - options: How queries attend; sinks belong to the merge.
    ///   - logSumExp: Gets the logarithm of the sum of `e^score` of each row, `float32`.
    /// - Throws: ``KernelError`` as for results.
    public func attend(
        _ queries: Tensor, over cache: AttentionCache, sequences: [Int], intoPartials partials: AttentionPartials,
        _ options: AttentionOptions = AttentionOptions(), logSumExp: Tensor? = nil
    ) throws(KernelError) {
        try attend(
            queries, over: cache, AttentionResults(partials: partials, logSumExp: logSumExp), options,
            sequences: sequences)
    }

    private func attend(
        _ queries: Tensor, over cache: AttentionCache, _ results: AttentionResults, _ options: AttentionOptions,
        sequence: Int
    ) throws(KernelError) {
        let sequence = try UInt32(sequence, "sequence", op: "AttentionCache")
        var how = try options.descriptor(op: "AttentionCache")
        var whereTo = results.descriptor
        try record { encoder, error in
            withExtendedLifetime((results, options)) {
                mnk_encoder_attend(
                    encoder, cache.handle.pointer, queries.handle.pointer, &whereTo, &how, sequence, error)
            }
        }
    }

    private func attend(
        _ queries: Tensor, over cache: AttentionCache, _ results: AttentionResults, _ options: AttentionOptions,
        sequences: [Int]
    ) throws(KernelError) {
        let list = try numbers(sequences, as: UInt32.self, "sequence", op: "AttentionCache")
        var how = try options.descriptor(op: "AttentionCache")
        var whereTo = results.descriptor
        try record { encoder, error in
            withExtendedLifetime((results, options)) {
                mnk_encoder_attend_sequences(
                    encoder, cache.handle.pointer, queries.handle.pointer, &whereTo, &how, list, list.count, error)
            }
        }
    }
}
