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
}
