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
/// ```swift
/// let view = QuantizedKVCacheView(
///     keys: try .zeros(.turbo(.bits4), heads: 8, headDim: 128, capacity: 4096, on: device),
///     values: try .zeros(.turbo(.bits4), heads: 8, headDim: 128, capacity: 4096, on: device))
/// let store = KVCacheQuantize(keys: k, values: v, into: view, at: 12)
/// print(try store.plan())
/// let done = try device.encode { step in try step.encode(store) }
/// ```
public struct KVCacheQuantize: Sendable {
    /// Source of the keys, of any float type.
    public var keys: HeadsView
    /// Source of the values; `nil` stores only keys.
    public var values: HeadsView?
    /// Where they go.
    public var destination: QuantizedKVCacheView
    /// The sequence that tokens go to; `nil` means the only one.
    public var sequence: Int?
    /// The position of the first token stored.
    public var position = 0
    /// If not `nil`, replaces ``sequence`` and ``position``.
    public var rows: KVCacheWrite.Rows?
    /// The order of axes of ``keys`` and ``values``. `.headMajor` makes both views head-major. Views with strides
    /// ignore it.
    public var sourceLayout = KVLayout.tokenMajor
    /// First source token to store.
    public var sourceOffset = 0
    /// How many tokens to store; `nil` means all that follow the offset.
    public var tokens: Int?
    /// Whether source tokens wrap around.
    public var sourceIsRing = false
    /// How vectors are quantized where the format allows a choice.
    public var options = KVQuantizeOptions()
    /// A `uint32` tensor `[2]`: the number of vectors with a NaN or an infinity, and of those whose scale exceeds the
    /// largest `float16`, are added.
    public var counts: Tensor?
    /// For one token of ``KVCodec/Name/mlx1``: a `float32` tensor `[heads, headDim]` that receives the keys' elements
    /// as they are compared with boundaries.
    public var probe: Tensor?

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

    /// Checks every rule and returns what would run, without running it.
    ///
    /// - Throws: ``KernelError`` for the first broken rule.
    public func plan() throws(KernelError) -> Plan {
        let operands = try Operands(self)
        return try Plan { error in operands.withDescriptor { mnk_kv_cache_quantize_make_plan($0, error) } }
    }
}

extension KernelEncoder {
    /// Records a ``KVCacheQuantize``.
    ///
    /// - Throws: ``KernelError`` for the first broken rule; nothing is recorded then.
    public func encode(_ op: KVCacheQuantize) throws(KernelError) {
        let operands = try Operands(op)
        try record { encoder, error in
            operands.withDescriptor { mnk_encoder_kv_cache_quantize(encoder, $0, error) }
        }
    }
}

/// The op in the types of the C API.
private struct Operands {
    private let op: KVCacheQuantize
    private let descriptor: mnk_kv_cache_quantize
    private let operands: StoreOperands

    init(_ op: KVCacheQuantize) throws(KernelError) {
        let name = "KVCacheQuantize"
        self.op = op
        operands = try StoreOperands(
            keys: op.keys, values: op.values, layout: op.sourceLayout, rows: op.rows, op: name)
        descriptor = mnk_kv_cache_quantize(
            keys: nil,
            values: nil,
            source_layout: op.sourceLayout.code,
            source_offset: try UInt64(op.sourceOffset, "sourceOffset", op: name),
            has_tokens: op.tokens != nil,
            tokens: try UInt64(op.tokens ?? 0, "tokens", op: name),
            source_is_ring: op.sourceIsRing,
            into: try op.destination.descriptor(op: name),
            sequence: try UInt64(sequence: op.sequence, op: name),
            position: try UInt64(op.position, "position", op: name),
            has_rows: op.rows != nil,
            sequences: mnk_row_indices(),
            positions: mnk_row_indices(),
            options: op.options.descriptor,
            counts: op.counts?.handle.pointer,
            probe: op.probe?.handle.pointer,
            keys_view: nil,
            values_view: nil)
    }

    func withDescriptor<Value>(_ body: (UnsafePointer<mnk_kv_cache_quantize>) -> Value) -> Value {
        operands.withPointers { pointers in
            var complete = descriptor
            complete.keys_view = pointers.keys
            complete.values_view = pointers.values
            complete.sequences = pointers.sequences
            complete.positions = pointers.positions
            return withExtendedLifetime(op) { body(&complete) }
        }
    }
}
