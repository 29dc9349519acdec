// Generated from Sources/API by generate.py: change the description instead.
#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Stores new tokens in a quantized cache that the caller owns.
///
/// For every token t stored and head h:
///
///     cache[sequence, h, slot(position + t)] = quantized(keys[h, sourceOffset + t])
///
/// as ``KVCodec`` says, and the same for values, in one dispatch. Sources, slots, rings and rows are those of
/// ``KVCacheWrite``. No vector affects what is stored for another.
///
/// A scale beyond the largest `float16` becomes the largest. Elements below 2^-125, or below 2^-100 of the vector's
/// largest, count as zero.
///
/// ```swift
/// let view = QuantizedKVCacheView(
///     keys: try .zeros(.turbo(.bits4), heads: 8, headDim: 128, capacity: 4096, on: device),
///     values: try .zeros(.turbo(.bits4), heads: 8, headDim: 128, capacity: 4096, on: device))
/// let store = KVCacheQuantize(keys: k, values: v, into: view, at: 12)
/// let done = try device.encode { step in try step.encode(store) }
/// ```
public struct KVCacheQuantize: Sendable, Op {
    /// Source of the keys, of any float type.
    public var keys: HeadsView
    /// Source of the values, of the same sequences and tokens; `nil` stores only keys.
    public var values: HeadsView? = nil
    /// The order of axes of ``keys`` and ``values``. ``KVLayout/headMajor`` makes both views head-major. Views with
    /// strides ignore it.
    public var sourceLayout: KVLayout = .tokenMajor
    /// First source token to store.
    public var sourceOffset: Int = 0
    /// How many tokens to store; without it, all that follow the offset.
    public var tokens: Int? = nil
    /// Whether source tokens wrap around, as when a ring without pinned positions is made linear. At most all tokens of
    /// the source can be stored.
    public var sourceIsRing: Bool = false
    /// Where they go.
    public var destination: QuantizedKVCacheView
    /// The sequence that tokens go to; `nil` is that of a cache of one.
    public var sequence: Int? = nil
    /// The position of the first token stored.
    public var position: Int = 0
    /// A place for each source token, which replaces ``sequence`` and ``position``.
    public var rows: KVCacheWrite.Rows? = nil
    /// How vectors are quantized where the format allows a choice.
    public var options: KVQuantizeOptions = KVQuantizeOptions()
    /// Of `uint32`, `[2]`: the number of vectors with a NaN or an infinity, and of those whose scale exceeds the
    /// largest `float16`, are added.
    public var counts: Tensor? = nil
    /// For one token of ``KVCodec/Name/mlx1``: of `float32`, `[heads, headDim]`, receives the keys' elements as they
    /// are compared with boundaries.
    public var probe: Tensor? = nil

    static var name: String { "KVCacheQuantize" }

    /// Checks every rule and returns what would run, without running it.
    ///
    /// - Throws: ``KernelError`` for the first broken rule.
    public func plan() throws(KernelError) -> Plan {
        try withDescriptor { descriptor throws(KernelError) in
            try Plan { mnk_kv_cache_quantize_make_plan(descriptor, $0) }
        }
    }

    func descriptor(of owner: String = "", op: String, in memory: CallMemory) throws(KernelError)
        -> mnk_kv_cache_quantize
    {
        mnk_kv_cache_quantize(
            keys: try keys.descriptor(of: "keys", op: op),
            values: try values?.descriptor(of: "values", op: op) ?? mnk_heads_view(),
            source_layout: sourceLayout.code,
            source_offset: try UInt64(sourceOffset, "sourceOffset", of: owner, op: op),
            has_tokens: tokens != nil,
            tokens: try UInt64(tokens ?? 0, "tokens", of: owner, op: op),
            source_is_ring: sourceIsRing,
            into: try destination.descriptor(of: "destination", op: op),
            sequence: try UInt64(sequence: sequence, op: op),
            position: try UInt64(position, "position", of: owner, op: op),
            has_rows: rows != nil,
            rows: try rows?.descriptor(of: "rows", op: op, in: memory) ?? mnk_kv_cache_write_rows(),
            options: options.descriptor,
            counts: counts?.handle.pointer,
            probe: probe?.handle.pointer)
    }
}

extension KVCacheQuantize {
    /// Stores consecutive tokens, the first at `position`. A cache of several sequences needs the sequence.
    public init(
        keys: some HeadsViewConvertible, values: (any HeadsViewConvertible)? = nil,
        into destination: QuantizedKVCacheView, at position: Int, sequence: Int? = nil,
        sourceLayout: KVLayout = .tokenMajor, sourceOffset: Int = 0, tokens: Int? = nil, sourceIsRing: Bool = false,
        options: KVQuantizeOptions = KVQuantizeOptions(), counts: Tensor? = nil, probe: Tensor? = nil
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
        into destination: QuantizedKVCacheView, rows: KVCacheWrite.Rows, sourceLayout: KVLayout = .tokenMajor,
        sourceOffset: Int = 0, tokens: Int? = nil, options: KVQuantizeOptions = KVQuantizeOptions(),
        counts: Tensor? = nil
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

extension KernelEncoder {
    /// Records a ``KVCacheQuantize``.
    ///
    /// - Throws: ``KernelError`` for the first broken rule; nothing is recorded then.
    public func encode(_ op: KVCacheQuantize) throws(KernelError) {
        try op.withDescriptor { descriptor throws(KernelError) in
            try record { mnk_encoder_kv_cache_quantize($0, descriptor, $1) }
        }
    }
}

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
public struct KVCacheDequantize: Sendable, Op {
    /// The cache that is read.
    public var source: QuantizedKVCacheView
    /// The sequence that is read; `nil` is that of a cache of one.
    public var sequence: Int? = nil
    /// The position of the first token read.
    public var position: Int
    /// Receives the keys, in any float type; `nil` reads only values.
    public var keys: Tensor? = nil
    /// Receives the values, in the same type; `nil` reads only keys.
    public var values: Tensor? = nil
    /// The order of axes of keys and values.
    public var layout: KVLayout = .tokenMajor
    /// The domain of what is read.
    public var domain: KVDomain = .original

    static var name: String { "KVCacheDequantize" }

    /// Checks every rule and returns what would run, without running it.
    ///
    /// - Throws: ``KernelError`` for the first broken rule.
    public func plan() throws(KernelError) -> Plan {
        try withDescriptor { descriptor throws(KernelError) in
            try Plan { mnk_kv_cache_dequantize_make_plan(descriptor, $0) }
        }
    }

    func descriptor(of owner: String = "", op: String, in memory: CallMemory) throws(KernelError)
        -> mnk_kv_cache_dequantize
    {
        mnk_kv_cache_dequantize(
            from: try source.descriptor(of: "source", op: op),
            sequence: try UInt64(sequence: sequence, op: op),
            position: try UInt64(position, "position", of: owner, op: op),
            keys: keys?.handle.pointer,
            values: values?.handle.pointer,
            layout: layout.code,
            domain: domain.code)
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

extension KernelEncoder {
    /// Records a ``KVCacheDequantize``.
    ///
    /// - Throws: ``KernelError`` for the first broken rule; nothing is recorded then.
    public func encode(_ op: KVCacheDequantize) throws(KernelError) {
        try op.withDescriptor { descriptor throws(KernelError) in
            try record { mnk_encoder_kv_cache_dequantize($0, descriptor, $1) }
        }
    }
}

/// Applies the Walsh-Hadamard transform in natural order to every vector along a tensor's last axis, scaled so that
/// lengths do not change.
///
///     forward   y = H(s .* x) / sqrt(n)        inverse   y = s .* H(x) / sqrt(n)
///
/// where n is a power of two from 4 to 4096 and s are the signs of a codec at this length, or ones. With a codec's
/// signs, forward takes a query to the domain of its codes, and inverse takes the result of attention over them back.
/// At 80, 96, 112 and 192 elements H / sqrt(n) is the rotation by blocks of ``KVCodec/Name/turbo``.
///
/// Attention does both inside: only a kernel of your own that attends over codes needs them.
///
/// ```swift
/// let done = try device.encode { step in
///     try step.encode(Hadamard(queries, signs: .turbo))
///     try step.dispatch("my_attention_over_codes", in: library, buffers: buffers, threads: GridSize(rows))
///     try step.encode(Hadamard(out, signs: .turbo, isInverse: true))
/// }
/// ```
public struct Hadamard: Sendable, Op {
    /// The vectors, of any float type.
    public var source: Tensor
    /// Where results go, of the same shape and any float type; `nil` means in place.
    public var destination: Tensor?
    /// The codec whose signs are used; `nil` means none. ``KVCodec/Name/turbo`` has signs at 32, 64, 80, 96, 112, 128,
    /// 192, 256 and 512, ``KVCodec/Name/mlx1`` at 256 and 512, with ones at other powers of two. Other codecs have
    /// none.
    public var signs: KVCodec.Name?
    /// Whether to undo the transform.
    public var isInverse: Bool

    /// A transform. It is checked when it is used.
    public init(
        _ source: Tensor, into destination: Tensor? = nil, signs: KVCodec.Name? = nil, isInverse: Bool = false
    ) {
        self.source = source
        self.destination = destination
        self.signs = signs
        self.isInverse = isInverse
    }

    static var name: String { "Hadamard" }

    /// Checks every rule and returns what would run, without running it.
    ///
    /// - Throws: ``KernelError`` for the first broken rule.
    public func plan() throws(KernelError) -> Plan {
        try withDescriptor { descriptor throws(KernelError) in
            try Plan { mnk_hadamard_make_plan(descriptor, $0) }
        }
    }

    func descriptor(of owner: String = "", op: String, in memory: CallMemory) throws(KernelError) -> mnk_hadamard {
        mnk_hadamard(
            from: source.handle.pointer,
            into: destination?.handle.pointer,
            has_signs: signs != nil,
            signs: (signs ?? .turbo).code,
            is_inverse: isInverse)
    }
}

extension KernelEncoder {
    /// Records a ``Hadamard``.
    ///
    /// - Throws: ``KernelError`` for the first broken rule; nothing is recorded then.
    public func encode(_ op: Hadamard) throws(KernelError) {
        try op.withDescriptor { descriptor throws(KernelError) in
            try record { mnk_encoder_hadamard($0, descriptor, $1) }
        }
    }
}
