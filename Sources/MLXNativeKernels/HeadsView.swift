#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// A source of vectors, one for every sequence, token and head: a ``Tensor``, which is always token-major, or a
/// ``HeadsView``, which states another layout.
///
/// ```swift
/// try step.append(keys: k, values: v, to: cache)                        // [tokens, kvHeads, headDim]
/// try step.append(keys: k.headMajor, values: v.headMajor, to: cache)    // [kvHeads, tokens, headDim], as MLX has them
/// ```
public protocol HeadsViewConvertible: Sendable {
    /// Where the vectors are.
    var headsView: HeadsView { get }
}

extension Tensor: HeadsViewConvertible {
    /// All of the tensor, token-major: `[batch, tokens, heads, headDim]`, where the batch may be left out.
    public var headsView: HeadsView { HeadsView(self) }

    /// All of the tensor in MLX's `[batch, heads, tokens, headDim]`, where the batch may be left out.
    public var headMajor: HeadsView { HeadsView(self, layout: .headMajor) }
}

extension HeadsView: HeadsViewConvertible {
    /// The view itself.
    public var headsView: HeadsView { self }
}

/// Vectors of `headDim` elements, one for every sequence, token and head, in a tensor's memory.
///
/// By the tensor's shape, where the sequences may be left out:
/// - token-major: `[sequences, tokens, heads, headDim]`, or `[heads, headDim]` for one token
/// - head-major: `[sequences, heads, tokens, headDim]`
///
/// or with any strides, such as in some columns of a fused projection.
///
/// ```swift
/// let fused = try Tensor.zeros(shape: [tokens, 48 * 128], dtype: .float16, on: device)
/// let queries = try HeadsView.columns(of: fused, from: 0, heads: 32, headDim: 128)
/// let keys = try HeadsView.columns(of: fused, from: 32 * 128, heads: 8, headDim: 128)
/// ```
public struct HeadsView: Sendable {
    /// Counts of vectors, and the distances between them in elements.
    public struct Strides: Sendable, Hashable {
        /// How many sequences there are.
        public var sequences: Int
        /// Tokens of one sequence.
        public var tokens: Int
        /// Heads of one token.
        public var heads: Int
        /// Elements of one head.
        public var headDim: Int
        /// The offset of the first element in the tensor.
        public var offset: Int
        /// From one sequence to the next.
        public var sequenceStride: Int
        /// From one token to the next.
        public var tokenStride: Int
        /// From one head to the next.
        public var headStride: Int

        /// Vectors at these distances.
        public init(
            sequences: Int = 1, tokens: Int, heads: Int, headDim: Int, offset: Int = 0, sequenceStride: Int = 0,
            tokenStride: Int, headStride: Int
        ) {
            self.sequences = sequences
            self.tokens = tokens
            self.heads = heads
            self.headDim = headDim
            self.offset = offset
            self.sequenceStride = sequenceStride
            self.tokenStride = tokenStride
            self.headStride = headStride
        }
    }

    /// The memory.
    public var tensor: Tensor
    /// The order of its axes.
    public var layout: KVLayout
    /// If not `nil`, replaces the tensor's shape and ``layout``.
    public var strides: Strides?

    /// All of a tensor, by its shape. It is checked when it is used.
    public init(_ tensor: Tensor, layout: KVLayout = .tokenMajor) {
        self.tensor = tensor
        self.layout = layout
    }

    /// Vectors with explicit strides. They are checked when they are used.
    public init(_ tensor: Tensor, strides: Strides) {
        self.tensor = tensor
        self.layout = .tokenMajor
        self.strides = strides
    }

    /// Heads side by side in the columns of a `[tokens, width]` or `[sequences, tokens, width]` tensor, as a fused
    /// projection leaves them.
    ///
    /// - Throws: ``KernelError`` if the tensor has another rank, or a number is negative.
    public static func columns(
        of tensor: Tensor, from firstColumn: Int, heads: Int, headDim: Int
    ) throws(KernelError) -> HeadsView {
        let op = "HeadsView"
        let first = try UInt64(firstColumn, "the first column", op: op)
        let (heads, headDim) = (try UInt64(heads, "heads", op: op), try UInt64(headDim, "headDim", op: op))
        var view = mnk_heads_view()
        try calling { mnk_heads_view_set_columns(&view, tensor.handle.pointer, first, heads, headDim, $0) }
        return HeadsView(
            tensor,
            strides: Strides(
                sequences: Int(clamping: view.sequences), tokens: Int(clamping: view.tokens),
                heads: Int(clamping: view.heads), headDim: Int(clamping: view.head_dim),
                offset: Int(clamping: view.offset), sequenceStride: Int(clamping: view.sequence_stride),
                tokenStride: Int(clamping: view.token_stride), headStride: Int(clamping: view.head_stride)))
    }

    /// The same vectors, head-major if the layout is. Strides need no layout.
    func read(as layout: KVLayout) -> HeadsView {
        var view = self
        if layout == .headMajor { view.layout = layout }
        return view
    }

    func descriptor(_ name: String, op: String) throws(KernelError) -> mnk_heads_view {
        var view = mnk_heads_view()
        view.tensor = tensor.handle.pointer
        view.layout = layout.code
        guard let strides else { return view }
        view.has_strides = true
        view.sequences = try UInt64(strides.sequences, "the number of sequences of \(name)", op: op)
        view.tokens = try UInt64(strides.tokens, "the number of tokens of \(name)", op: op)
        if strides.sequences == 0 { view.tokens = 0 }  // C takes 0 sequences for 1
        view.heads = try UInt64(strides.heads, "the number of heads of \(name)", op: op)
        view.head_dim = try UInt64(strides.headDim, "the head dim of \(name)", op: op)
        view.offset = try UInt64(strides.offset, "the offset of \(name)", op: op)
        view.sequence_stride = try UInt64(strides.sequenceStride, "the sequence stride of \(name)", op: op)
        view.token_stride = try UInt64(strides.tokenStride, "the token stride of \(name)", op: op)
        view.head_stride = try UInt64(strides.headStride, "the head stride of \(name)", op: op)
        return view
    }
}
