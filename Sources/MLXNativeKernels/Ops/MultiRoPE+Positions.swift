#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension MultiRoPE {
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
}

extension KernelEncoder {
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

extension MultiRoPE.Positions {
    func descriptor(of owner: String, op: String, in memory: CallMemory) throws(KernelError) -> mnk_rotary_positions {
        var given = mnk_rotary_positions()
        switch self {
        case .text(let first):
            given.has_first = true
            given.first = Int64(first)
        case .perToken(let positions): try given.setAxes([positions], op: op, in: memory)
        case .perAxis(let axes): try given.setAxes(axes, op: op, in: memory)
        case .tensor(let tensor): given.tensor = tensor.handle.pointer
        case .next(let cache, let sequences, let rowCounts):
            let rows = try ListedRows(of: cache, sequences, rowCounts: rowCounts, op: op, in: memory)
            given.cache = cache.handle.pointer
            given.sequences = rows.sequences
            given.row_counts = rows.rowCounts
            given.sequence_count = rows.count
        }
        return given
    }
}

extension mnk_rotary_positions {
    fileprivate mutating func setAxes(_ axes: [[Int]], op: String, in memory: CallMemory) throws(KernelError) {
        guard axes.allSatisfy({ $0.count == axes[0].count }) else {
            throw .invalid(
                op: op, what: "axes hold different numbers of positions", got: "\(axes.map(\.count))",
                expected: "one position for each token on each axis",
                fix: "Give every token a position on each axis.")
        }
        let positions = Array(axes.joined())
        list = try memory.keep(positions) { (one) throws(KernelError) in try Int32(one, "a position", op: op) }
        list_count = positions.count
        list_axes = try UInt32(axes.count, "the number of axes", op: op)
    }
}

extension MultiRoPE.Offsets {
    func descriptor(of owner: String, op: String, in memory: CallMemory) throws(KernelError) -> mnk_rotary_offsets {
        switch self {
        case .list(let list):
            let numbers = try memory.keep(list) { (one) throws(KernelError) in try Int32(one, "an offset", op: op) }
            return mnk_rotary_offsets(list: numbers, list_count: list.count, tensor: nil)
        case .tensor(let tensor): return mnk_rotary_offsets(list: nil, list_count: 0, tensor: tensor.handle.pointer)
        }
    }
}
