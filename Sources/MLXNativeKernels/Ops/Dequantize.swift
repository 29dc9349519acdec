#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension KernelEncoder {
    /// Dequantizes positions of a quantized cache; the tensors say how many.
    ///
    /// What the same step has appended can be read, what it has overwritten cannot.
    ///
    /// ```swift
    /// let keys = try Tensor.zeros(shape: [64, 8, 128], dtype: .float16, on: device)
    /// let done = try device.encode { try $0.dequantize(cache, from: 0, keys: keys) }
    /// ```
    ///
    /// - Parameters:
    ///   - cache: A cache of quantized storage.
    ///   - position: The first position that is read.
    ///   - sequence: Which of its sequences is read; `nil` means the only one.
    ///   - keys: Receives the keys: `[tokens, kvHeads, headDim]`, or `[kvHeads, headDim]` for one token; any float
    ///     type.
    ///   - values: Receives the values, in the same type, with the cache's `valueHeadDim`. At least one of both is
    ///     needed.
    ///   - domain: The domain of what is read.
    /// - Throws: ``KernelError`` for a dense cache, if shapes do not fit, or if positions are not held.
    public func dequantize(
        _ cache: AttentionCache, from position: Int, sequence: Int? = nil, keys: Tensor? = nil, values: Tensor? = nil,
        domain: KVDomain = .original
    ) throws(KernelError) {
        let position = try UInt64(position, "position", op: "AttentionCache")
        let number = try cache.number(ofSequence: sequence, op: "AttentionCache")
        try record { encoder, error in
            mnk_encoder_dequantize(
                encoder, cache.handle.pointer, keys?.handle.pointer, values?.handle.pointer, position, number,
                domain.code, error)
        }
    }
}
