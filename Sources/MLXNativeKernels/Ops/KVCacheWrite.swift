#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Stores new tokens in cache memory that the caller owns, converting to its element type.
///
/// For every token t stored, head h and element e:
///
///     cache[sequence, h, slot(position + t), e] = keys[h, sourceOffset + t, e]
///
/// and the same for values, in one dispatch. Equal element types copy bits unchanged; otherwise rounding is to nearest,
/// ties to even. On a ring, a write longer than the ring keeps the newest tokens.
///
/// Source shapes are `[tokens, heads, headDim]` or `[heads, headDim]` for one token (token-major, the default), or
/// `[heads, tokens, headDim]` (``Tensor/headMajor``); a ``HeadsView`` can have any strides. Tokens of several sequences
/// count one sequence after another.
///
/// ```swift
/// let write = KVCacheWrite(keys: k, values: v, into: view, at: 12)
/// print(try write.plan())
/// let done = try device.encode { step in try step.encode(write) }
/// ```
public struct KVCacheWrite: Sendable {
    /// One number for each token that is stored.
    public enum Indices: Sendable, ExpressibleByArrayLiteral {
        /// Numbers known in advance; they are checked.
        case list([Int])
        /// A `u32` tensor that the kernel reads.
        case tensor(Tensor)

        public init(arrayLiteral elements: Int...) { self = .list(elements) }
    }

    /// A sequence and a position for each of at most 1,024 source tokens. If several name the same slot, the last one
    /// wins.
    public struct Rows: Sendable {
        /// The sequence of each token.
        public var sequences: Indices
        /// The position of each token.
        public var positions: Indices

        /// Rows that go to these places.
        public init(sequences: Indices, positions: Indices) {
            self.sequences = sequences
            self.positions = positions
        }
    }

    /// Source of the keys.
    public var keys: HeadsView
    /// Source of the values; `nil` stores only keys.
    public var values: HeadsView?
    /// Where they go.
    public var destination: KVCacheView
    /// The sequence that tokens go to; `nil` means the only one.
    public var sequence: Int?
    /// The position of the first token stored.
    public var position = 0
    /// If not `nil`, replaces ``sequence`` and ``position``.
    public var rows: Rows?
    /// The order of axes of ``keys`` and ``values``. `.headMajor` makes both views head-major. Views with strides
    /// ignore it.
    public var sourceLayout = KVLayout.tokenMajor
    /// First source token to store.
    public var sourceOffset = 0
    /// How many tokens to store; `nil` means all that follow the offset.
    public var tokens: Int?
    /// Whether source tokens wrap around, as when a ring without pinned positions is made linear. At most all tokens of
    /// the source can be stored.
    public var sourceIsRing = false

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

    /// Checks every rule and returns what would run, without running it.
    ///
    /// - Throws: ``KernelError`` for the first broken rule.
    public func plan() throws(KernelError) -> Plan {
        let operands = try Operands(self)
        return try Plan { error in operands.withDescriptor { mnk_kv_cache_write_make_plan($0, error) } }
    }
}

extension KernelEncoder {
    /// Records a ``KVCacheWrite``.
    ///
    /// - Throws: ``KernelError`` for the first broken rule; nothing is recorded then.
    public func encode(_ op: KVCacheWrite) throws(KernelError) {
        let operands = try Operands(op)
        try record { encoder, error in
            operands.withDescriptor { mnk_encoder_kv_cache_write(encoder, $0, error) }
        }
    }
}

/// The op in the types of the C API.
private struct Operands {
    private let op: KVCacheWrite
    private let descriptor: mnk_kv_cache_write
    private let operands: StoreOperands

    init(_ op: KVCacheWrite) throws(KernelError) {
        let name = "KVCacheWrite"
        self.op = op
        operands = try StoreOperands(
            keys: op.keys, values: op.values, layout: op.sourceLayout, rows: op.rows, op: name)
        descriptor = mnk_kv_cache_write(
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
            keys_view: nil,
            values_view: nil)
    }

    func withDescriptor<Value>(_ body: (UnsafePointer<mnk_kv_cache_write>) -> Value) -> Value {
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
