#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

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
public struct MultiRoPE: Sendable {
    /// The position of each token, from -2^31 to 2^31 - 1, on one to four axes.
    ///
    /// One axis is used for all of them, as for text. With several sequences, tokens of the first come first. At most
    /// 1024 numbers can be known in advance; use a tensor for more.
    public enum Positions: Sendable {
        /// Counts up from here in every sequence.
        case text(startingAt: Int)
        /// One position for each token, known in advance.
        case perToken([Int])
        /// One position for each token on each axis, such as time, height and width.
        case perAxis([[Int]])
        /// The same as an `int32` or `uint32` tensor that the kernel reads: `[tokens]`, `[axes, tokens]` or
        /// `[axes, sequences, tokens]`.
        case tensor(Tensor)
        /// The positions that the next tokens of a cache get, after what the step has appended.
        ///
        /// They follow the cache: a ``RecordedStep`` asks for them with every run. The same step must append the
        /// rotated keys; otherwise it throws when it is submitted. The step knows tokens by their memory, head by head.
        /// It throws if it appends or attends with rows that were rotated for another token, by another embedding than
        /// the keys, or not at all, and if it rotates rows by `.next` or in `appendAndAttend` that it has rotated by
        /// `.next` before, unless a kernel that it encodes has written them since. A rotation by other positions counts
        /// as such a kernel. In an encoder over your own command buffer, where other kernels may write in between, only
        /// the number of tokens is checked.
        /// Values are not compared: do not rotate them. Of several tensors that were rotated for one token, the step
        /// cannot know which one is meant.
        /// ``MultiRoPE/plan()`` throws for these positions, because a plan would not follow the cache.
        ///
        /// Lists mean what they mean in ``KernelEncoder/append(keys:values:to:sequences:rowCounts:)``. `nil` means the
        /// only sequence of the cache, and the same number of tokens for each sequence.
        case next(of: AttentionCache, sequences: [Int]? = nil, rowCounts: [Int]? = nil)
    }

    /// One number for each sequence, at most 1024 unless in a tensor.
    ///
    /// What MLX takes as an array of offsets is this with positions `.text(startingAt: 0)`.
    public enum Offsets: Sendable, ExpressibleByArrayLiteral {
        /// Numbers known in advance; they are checked.
        case list([Int])
        /// An `int32` or `uint32` tensor that the kernel reads.
        case tensor(Tensor)

        public init(arrayLiteral elements: Int...) { self = .list(elements) }
    }

    /// The queries.
    public var queries: HeadsView
    /// The keys: other heads of the same tokens.
    public var keys: HeadsView?
    /// Where rotated queries go, with their own element type and strides; `nil` means in place.
    public var rotatedQueries: HeadsView?
    /// Where rotated keys go; `nil` means in place.
    public var rotatedKeys: HeadsView?
    /// The position of each token.
    public var positions: Positions
    /// Added to all positions of a sequence, such as a model's rope delta.
    public var offsets: Offsets?
    /// How positions rotate pairs.
    public var rotary: RotaryEmbedding

    /// A rotation of queries, or of queries and keys. It is checked when it is used.
    public init(
        _ queries: HeadsView, _ keys: HeadsView? = nil, intoQueries rotatedQueries: HeadsView? = nil,
        intoKeys rotatedKeys: HeadsView? = nil, positions: Positions, offsets: Offsets? = nil,
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

    /// Checks every rule and returns what would run, without running it.
    ///
    /// - Throws: ``KernelError`` for the first broken rule.
    public func plan() throws(KernelError) -> Plan {
        let operands = try Operands(self)
        return try Plan { error in operands.withDescriptor { mnk_multi_rope_make_plan($0, error) } }
    }
}

extension KernelEncoder {
    /// Records a ``MultiRoPE``.
    ///
    /// - Throws: ``KernelError`` for the first broken rule; nothing is recorded then.
    public func encode(_ op: MultiRoPE) throws(KernelError) {
        let operands = try Operands(op)
        try record { encoder, error in
            operands.withDescriptor { mnk_encoder_multi_rope(encoder, $0, error) }
        }
    }

    /// Rotates queries, and keys, in place by their positions.
    ///
    /// - Parameters:
    ///   - queries: `[tokens, heads, headDim]`, `[heads, headDim]` for one token, or
    ///     `[sequences, tokens, heads, headDim]`, or a view of another layout; any float type. One new token of each of
    ///     B sequences is `[B, 1, heads, headDim]`.
    ///   - keys: The same tokens with their own heads.
    ///   - layout: The order of axes. `.headMajor` makes both views head-major, as ``Tensor/headMajor`` does.
    ///   - positions: The position of each token.
    ///   - offsets: Added to all positions of a sequence.
    ///   - rotary: How positions rotate pairs.
    /// - Throws: ``KernelError`` for the first broken rule; nothing is recorded then.
    public func rotate(
        _ queries: some HeadsViewConvertible, _ keys: (any HeadsViewConvertible)? = nil,
        layout: KVLayout = .tokenMajor, positions: MultiRoPE.Positions, offsets: MultiRoPE.Offsets? = nil,
        with rotary: RotaryEmbedding
    ) throws(KernelError) {
        try encode(
            MultiRoPE(
                queries.headsView.read(as: layout), keys?.headsView.read(as: layout), positions: positions,
                offsets: offsets, with: rotary))
    }
}

/// The op in the types of the C API.
private struct Operands: ~Copyable {
    private let op: MultiRoPE
    private let descriptor: mnk_multi_rope
    private let rotation: RotaryStepOperands

    init(_ op: MultiRoPE) throws(KernelError) {
        let name = "MultiRoPE"
        var rope = mnk_multi_rope()
        rope.queries = try op.queries.descriptor(of: "queries", op: name)
        if let keys = op.keys { rope.keys = try keys.descriptor(of: "keys", op: name) }
        if let rotated = op.rotatedQueries {
            rope.rotated_queries = try rotated.descriptor(of: "rotatedQueries", op: name)
        }
        if let rotated = op.rotatedKeys { rope.rotated_keys = try rotated.descriptor(of: "rotatedKeys", op: name) }
        rotation = try RotaryStepOperands(
            RotaryStep(op.rotary, positions: op.positions, offsets: op.offsets), op: name)
        descriptor = rope
        self.op = op
    }

    func withDescriptor<Value>(_ body: (UnsafePointer<mnk_multi_rope>) -> Value) -> Value {
        rotation.withDescriptor { rotation in
            var complete = descriptor
            complete.rotary = rotation.pointee.embedding
            complete.first_position = rotation.pointee.first_position
            complete.positions = rotation.pointee.positions
            complete.next = rotation.pointee.next
            complete.offsets = rotation.pointee.offsets
            return withExtendedLifetime(op) { body(&complete) }
        }
    }
}
