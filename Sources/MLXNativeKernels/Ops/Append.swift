#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension KernelEncoder {
    /// Writes new tokens at a sequence's next position, which advances when the step is submitted.
    ///
    /// - Parameters:
    ///   - keys: `[tokens, kvHeads, headDim]`, or `[kvHeads, headDim]` for one token; any float type.
    ///   - values: The same with the cache's `valueHeadDim`.
    ///   - cache: Where they go.
    ///   - sequence: Which of its sequences they continue.
    /// - Throws: ``KernelError`` where shapes do not fit the cache, or it is full and does not overwrite.
    public func append(
        keys: Tensor, values: Tensor, to cache: AttentionCache, sequence: Int = 0
    ) throws(KernelError) {
        let sequence = try UInt32(sequence, "sequence", op: "AttentionCache")
        try record { encoder, error in
            mnk_encoder_append(
                encoder, cache.handle.pointer, keys.handle.pointer, values.handle.pointer, sequence, error)
        }
    }

    /// Writes one new token for each listed sequence, each at its own next position.
    ///
    /// - Parameters:
    ///   - keys: `[sequences.count, kvHeads, headDim]`, in the order of the list; any float type.
    ///   - values: The same with the cache's `valueHeadDim`.
    ///   - cache: Where they go.
    ///   - sequences: The sequence of each token.
    /// - Throws: ``KernelError`` where shapes do not fit, or a sequence is unknown or full.
    public func append(
        keys: Tensor, values: Tensor, to cache: AttentionCache, sequences: [Int]
    ) throws(KernelError) {
        let list = try numbers(sequences, as: UInt32.self, "sequence", op: "AttentionCache")
        try record { encoder, error in
            mnk_encoder_append_rows(
                encoder, cache.handle.pointer, keys.handle.pointer, values.handle.pointer, list, list.count, error)
        }
    }
}
