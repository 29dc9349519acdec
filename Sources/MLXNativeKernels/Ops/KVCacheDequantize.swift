#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Dequantizes positions of a quantized cache, keys and values in one dispatch.
///
///     keys[t, h] = the key of head h at position + t      for each token of the tensor
///
/// Shapes are `[tokens, heads, headDim]` or `[heads, headDim]` for one token (token-major, the default), or
/// `[heads, tokens, headDim]` (head-major). With a first axis of sequences, their tokens follow each other: all are of
/// the one sequence that is read. The op cannot detect what a ring has overwritten.
///
/// ```swift
/// let keys = try Tensor.zeros(shape: [64, 8, 128], dtype: .float16, on: device)
/// let done = try device.encode { step in
///     try step.encode(KVCacheDequantize(keys: keys, from: view, at: 0))
/// }
/// ```
public struct KVCacheDequantize: Sendable {
    /// Receives the keys, in any float type; `nil` reads only values.
    public var keys: Tensor?
    /// Receives the values, in the same type; `nil` reads only keys.
    public var values: Tensor?
    /// The cache that is read.
    public var source: QuantizedKVCacheView
    /// The sequence that is read; `nil` means the only one.
    public var sequence: Int?
    /// The position of the first token read.
    public var position: Int
    /// The order of axes of keys and values.
    public var layout: KVLayout
    /// The domain of what is read.
    public var domain: KVDomain

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

    /// Checks every rule and returns what would run, without running it.
    ///
    /// - Throws: ``KernelError`` for the first broken rule.
    public func plan() throws(KernelError) -> Plan {
        var op = try descriptor()
        return try Plan { error in withExtendedLifetime(self) { mnk_kv_cache_dequantize_make_plan(&op, error) } }
    }

    fileprivate func descriptor() throws(KernelError) -> mnk_kv_cache_dequantize {
        let name = "KVCacheDequantize"
        return mnk_kv_cache_dequantize(
            from: try source.descriptor(op: name),
            sequence: try UInt64(sequence: sequence, op: name),
            position: try UInt64(position, "position", op: name),
            keys: keys?.handle.pointer,
            values: values?.handle.pointer,
            layout: layout.code,
            domain: domain.code)
    }
}

extension KernelEncoder {
    /// Records a ``KVCacheDequantize``.
    ///
    /// - Throws: ``KernelError`` for the first broken rule; nothing is recorded then.
    public func encode(_ op: KVCacheDequantize) throws(KernelError) {
        var descriptor = try op.descriptor()
        try record { encoder, error in
            withExtendedLifetime(op) { mnk_encoder_kv_cache_dequantize(encoder, &descriptor, error) }
        }
    }
}
