// Generated from Sources/API by generate.py: change the description instead.
#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// How queries and keys of a step over a cache are rotated, as ``MultiRoPE`` defines it.
///
/// Pass queries and keys that are not rotated. The call fails if the same step has rotated them by positions of a
/// cache; it cannot see rotations by numbers, or in earlier steps.
///
/// ```swift
/// let rotary = RotaryEmbedding(base: 1e6)
/// let done = try device.encode { step in
///     try step.appendAndAttend(queries: q, keys: k, values: v, rotary: .init(rotary), over: cache, into: out)
/// }
/// ```
public struct RotaryStep: Sendable {
    /// How positions rotate pairs.
    public var embedding: RotaryEmbedding
    /// The position of each of the step's tokens; `nil` means the positions that they get in the cache.
    public var positions: MultiRoPE.Positions?
    /// One number for each sequence, added to all its positions, such as a model's rope delta; a tensor is `int32` or
    /// `uint32`.
    public var offsets: MultiRoPE.Offsets?

    /// A rotation of a step. It is checked when it is used.
    public init(
        _ embedding: RotaryEmbedding, positions: MultiRoPE.Positions? = nil, offsets: MultiRoPE.Offsets? = nil
    ) {
        self.embedding = embedding
        self.positions = positions
        self.offsets = offsets
    }

    func descriptor(of owner: String = "", op: String, in memory: CallMemory) throws(KernelError) -> mnk_rotary_step {
        mnk_rotary_step(
            embedding: try embedding.descriptor(of: owner, op: op, in: memory),
            positions: try positions?.descriptor(of: "positions", op: op, in: memory) ?? mnk_rotary_positions(),
            offsets: try offsets?.descriptor(of: "offsets", op: op, in: memory) ?? mnk_rotary_offsets())
    }
}

/// Rotates queries and keys by their positions, in one dispatch if they have the same element types and are both in
/// place or both out of place.
///
///     into[sequence, token, head] = rotated(from[sequence, token, head])
///
/// as ``RotaryEmbedding`` defines it, by default in place, in any float type, computing in `float32`. Angles are
/// computed in integers, as fractions of a turn: position one million is as exact as position one.
///
/// ```swift
/// let rotary = RotaryEmbedding(layout: .imrope(24, 20, 20), base: 5e6)
/// let rope = MultiRoPE(HeadsView(q), HeadsView(k), positions: .perAxis([time, height, width]), with: rotary)
/// print(try rope.plan())
/// let done = try device.encode { step in try step.encode(rope) }
/// ```
public struct MultiRoPE: Sendable, Op {
    /// The queries.
    public var queries: HeadsView
    /// The keys: other heads of the same tokens.
    public var keys: HeadsView?
    /// Where rotated queries go, with their own element type and strides; `nil` means in place.
    public var rotatedQueries: HeadsView?
    /// Where rotated keys go; `nil` means in place.
    public var rotatedKeys: HeadsView?
    /// The position of each token.
    public var positions: MultiRoPE.Positions
    /// One number for each sequence, added to all its positions, such as a model's rope delta; a tensor is `int32` or
    /// `uint32`.
    public var offsets: MultiRoPE.Offsets?
    /// How positions rotate pairs.
    public var rotary: RotaryEmbedding

    /// A rotation of queries, or of queries and keys. It is checked when it is used.
    public init(
        _ queries: HeadsView, _ keys: HeadsView? = nil, intoQueries rotatedQueries: HeadsView? = nil,
        intoKeys rotatedKeys: HeadsView? = nil, positions: MultiRoPE.Positions, offsets: MultiRoPE.Offsets? = nil,
        with rotary: RotaryEmbedding
    ) {
        self.queries = queries
        self.keys = keys
        self.rotatedQueries = rotatedQueries
        self.rotatedKeys = rotatedKeys
        self.positions = positions
        self.offsets = offsets
        self.rotary = rotary
    }

    static var name: String { "MultiRoPE" }

    /// Checks every rule and returns what would run, without running it.
    ///
    /// - Throws: ``KernelError`` for the first broken rule.
    public func plan() throws(KernelError) -> Plan {
        try withDescriptor { descriptor throws(KernelError) in
            try Plan { mnk_multi_rope_make_plan(descriptor, $0) }
        }
    }

    func descriptor(of owner: String = "", op: String, in memory: CallMemory) throws(KernelError) -> mnk_multi_rope {
        mnk_multi_rope(
            queries: try queries.descriptor(of: "queries", op: op),
            keys: try keys?.descriptor(of: "keys", op: op) ?? mnk_heads_view(),
            rotated_queries: try rotatedQueries?.descriptor(of: "rotatedQueries", op: op) ?? mnk_heads_view(),
            rotated_keys: try rotatedKeys?.descriptor(of: "rotatedKeys", op: op) ?? mnk_heads_view(),
            positions: try positions.descriptor(of: "positions", op: op, in: memory),
            offsets: try offsets?.descriptor(of: "offsets", op: op, in: memory) ?? mnk_rotary_offsets(),
            rotary: try rotary.descriptor(of: "rotary", op: op, in: memory))
    }
}

extension KernelEncoder {
    /// Records a ``MultiRoPE``.
    ///
    /// - Throws: ``KernelError`` for the first broken rule; nothing is recorded then.
    public func encode(_ op: MultiRoPE) throws(KernelError) {
        try op.withDescriptor { descriptor throws(KernelError) in
            try record { mnk_encoder_multi_rope($0, descriptor, $1) }
        }
    }
}
