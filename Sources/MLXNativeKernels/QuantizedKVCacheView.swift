#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension QuantizedKVPlane {
    /// Dense vectors beside codes: `float32`, `float16` or `bfloat16`, with `headDim` instead of `codeBytes`.
    public init(elements: Tensor) {
        self.init(codec: .turbo(.bits4), codes: elements, scales: nil)
    }

    /// New memory, in which every vector is zero.
    ///
    /// - Throws: ``KernelError`` if the codec does not support this head dim, for an impossible shape, or if memory
    ///   runs out.
    public static func zeros(
        _ codec: KVCodec, heads: Int, headDim: Int, capacity: Int, sequences: Int? = nil,
        layout: KVLayout = .headMajor, on device: KernelDevice
    ) throws(KernelError) -> QuantizedKVPlane {
        let sizes = try codec.sizes(headDim: headDim)
        let slots = (sequences.map { [$0] } ?? []) + (layout == .headMajor ? [heads, capacity] : [capacity, heads])
        return QuantizedKVPlane(
            codec: codec,
            codes: try Tensor.zeros(shape: slots + [sizes.codeBytes], dtype: .uint8, on: device),
            scales: try Tensor.zeros(
                shape: slots + (sizes.scales > 1 ? [sizes.scales] : []), dtype: codec.scaleType, on: device))
    }
}

extension QuantizedKVCacheView {
    /// Bytes that codes and scales of such a cache take, before it is made.
    ///
    /// ```swift
    /// try QuantizedKVCacheView.byteCount(
    ///     keys: .turbo(.bits4), values: .turbo(.bits4), heads: 8, headDim: 128, capacity: 4096)      // 4325376
    /// ```
    ///
    /// - Parameters:
    ///   - keys: The codec of keys.
    ///   - values: The codec of values; `nil` for keys only.
    ///   - heads: Heads of keys and values.
    ///   - headDim: Elements of a key of one head.
    ///   - valueHeadDim: Elements of a value of one head; by default those of a key.
    ///   - capacity: Slots of one sequence.
    ///   - sequences: Sequences that are kept side by side.
    /// - Throws: ``KernelError`` if a codec does not support its head dim, or the bytes are too many to count.
    public static func byteCount(
        keys: KVCodec, values: KVCodec?, heads: Int, headDim: Int, valueHeadDim: Int? = nil, capacity: Int,
        sequences: Int = 1
    ) throws(KernelError) -> Int {
        let op = "QuantizedKVCacheView"
        var extents = mnk_quantized_cache_extents()
        extents.keys = try keys.descriptor(op: op)
        extents.head_dim = try UInt64(headDim, "headDim", op: op)
        // The C API reads a value head dim of 0, and 0 sequences, as missing numbers.
        if let values {
            _ = try values.sizes(headDim: valueHeadDim ?? headDim)
            extents.has_values = true
            extents.values = try values.descriptor(op: op)
            extents.value_head_dim = try UInt64(valueHeadDim ?? headDim, "valueHeadDim", op: op)
        }
        extents.heads = try UInt64(heads, "heads", op: op)
        extents.capacity = try UInt64(capacity, "capacity", op: op)
        extents.sequences = try UInt64(sequences, "sequences", op: op)
        var bytes: UInt64 = 0
        try calling { mnk_quantized_cache_get_byte_count(&extents, &bytes, $0) }
        return sequences == 0 ? 0 : Int(clamping: bytes)
    }
}
