// Generated from Sources/API by generate.py: change the description instead.
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
/// ties to even. On a ring, a write longer than the ring keeps the newest tokens, with one writer for each slot.
///
/// Source shapes are `[tokens, heads, headDim]` or `[heads, headDim]` for one token (token-major, the default), or
/// `[heads, tokens, headDim]` (head-major); views can have any strides (``HeadsView``). Tokens of several sequences
/// count one sequence after another: those of sequence s start at `s * tokens`.
///
/// ```swift
/// let write = KVCacheWrite(keys: k, values: v, into: view, at: 12)
/// print(try write.plan())
/// let done = try device.encode { step in try step.encode(write) }
/// ```
public struct KVCacheWrite: Sendable, Op {
    /// A sequence and a position for each of at most 1,024 source tokens. If several name the same slot, the last one
    /// wins.
    public struct Rows: Sendable {
        /// The sequence of each token; a tensor is `uint32`.
        public var sequences: KVCacheWrite.Indices
        /// The position of each token; a tensor is `uint32`.
        public var positions: KVCacheWrite.Indices

        /// Rows that go to these places.
        public init(sequences: KVCacheWrite.Indices, positions: KVCacheWrite.Indices) {
            self.sequences = sequences
            self.positions = positions
        }

        func descriptor(of owner: String = "", op: String, in memory: CallMemory) throws(KernelError)
            -> mnk_kv_cache_write_rows
        {
            mnk_kv_cache_write_rows(
                sequences: try sequences.descriptor(of: "sequences", op: op, in: memory),
                positions: try positions.descriptor(of: "positions", op: op, in: memory))
        }
    }

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
    public var destination: KVCacheView
    /// The sequence that tokens go to; `nil` is that of a cache of one.
    public var sequence: Int? = nil
    /// The position of the first token stored.
    public var position: Int = 0
    /// A place for each source token, which replaces ``sequence`` and ``position``.
    public var rows: Rows? = nil

    static var name: String { "KVCacheWrite" }

    /// Checks every rule and returns what would run, without running it.
    ///
    /// - Throws: ``KernelError`` for the first broken rule.
    public func plan() throws(KernelError) -> Plan {
        try withDescriptor { descriptor throws(KernelError) in
            try Plan { mnk_kv_cache_write_make_plan(descriptor, $0) }
        }
    }

    func descriptor(of owner: String = "", op: String, in memory: CallMemory) throws(KernelError) -> mnk_kv_cache_write
    {
        mnk_kv_cache_write(
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
            rows: try rows?.descriptor(of: "rows", op: op, in: memory) ?? mnk_kv_cache_write_rows())
    }
}

extension KVCacheWrite {
    /// A write of consecutive tokens, the first at `position`. A cache of several sequences needs the sequence.
    public init(
        keys: some HeadsViewConvertible, values: (any HeadsViewConvertible)? = nil, into destination: KVCacheView,
        at position: Int, sequence: Int? = nil, sourceLayout: KVLayout = .tokenMajor, sourceOffset: Int = 0,
        tokens: Int? = nil, sourceIsRing: Bool = false
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
        rows: Rows, sourceLayout: KVLayout = .tokenMajor, sourceOffset: Int = 0, tokens: Int? = nil
    ) {
        self.keys = keys.headsView
        self.values = values?.headsView
        self.destination = destination
        self.rows = rows
        self.sourceLayout = sourceLayout
        self.sourceOffset = sourceOffset
        self.tokens = tokens
    }
}

extension KernelEncoder {
    /// Records a ``KVCacheWrite``.
    ///
    /// - Throws: ``KernelError`` for the first broken rule; nothing is recorded then.
    public func encode(_ op: KVCacheWrite) throws(KernelError) {
        try op.withDescriptor { descriptor throws(KernelError) in
            try record { mnk_encoder_kv_cache_write($0, descriptor, $1) }
        }
    }
}
