// Generated from Sources/API by generate.py: change the description instead.
#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// The order of axes in memory that holds keys or values.
public enum KVLayout: Sendable, Hashable, CaseIterable {
    /// Heads outside, tokens inside: `[heads, tokens, headDim]`.
    case headMajor
    /// Tokens outside, heads inside: `[tokens, heads, headDim]`.
    case tokenMajor

    var code: mnk_kv_layout {
        switch self {
        case .headMajor: .MNK_KV_LAYOUT_HEAD_MAJOR
        case .tokenMajor: .MNK_KV_LAYOUT_TOKEN_MAJOR
        }
    }
}

/// Where positions beyond the last slot go.
public enum KVWrap: Sendable, Hashable, CaseIterable {
    /// An error: position p is in slot p, and there is no slot beyond the capacity.
    case linear
    /// Around: the newest positions take the slots of the oldest.
    case ring

    var code: mnk_kv_wrap {
        switch self {
        case .linear: .MNK_KV_WRAP_LINEAR
        case .ring: .MNK_KV_WRAP_RING
        }
    }
}

/// Vectors of `headDim` elements, one for every sequence, token and head, in a tensor's memory.
///
/// By the tensor's shape, where the sequences may be left out:
/// - token-major: `[sequences, tokens, heads, headDim]`, or `[heads, headDim]` for one token
/// - head-major: `[sequences, heads, tokens, headDim]`
///
/// or with any strides, such as in some columns of a fused projection. The elements of a vector are contiguous.
///
/// ```swift
/// let fused = try Tensor.zeros(shape: [tokens, 48 * 128], dtype: .float16, on: device)
/// let queries = try HeadsView.columns(of: fused, from: 0, heads: 32, headDim: 128)
/// let keys = try HeadsView.columns(of: fused, from: 32 * 128, heads: 8, headDim: 128)
/// ```
public struct HeadsView: Sendable {
    /// Counts of vectors, and the distances between them in elements. A stride of 0 reads the same vectors again.
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

        func descriptor(of owner: String = "", op: String) throws(KernelError) -> mnk_heads_view_strides {
            mnk_heads_view_strides(
                sequences: try UInt64(
                    nonzero(sequences, "sequences", of: owner, op: op), "sequences", of: owner, op: op),
                tokens: try UInt64(tokens, "tokens", of: owner, op: op),
                heads: try UInt64(heads, "heads", of: owner, op: op),
                head_dim: try UInt64(headDim, "headDim", of: owner, op: op),
                offset: try UInt64(offset, "offset", of: owner, op: op),
                sequence_stride: try UInt64(sequenceStride, "sequenceStride", of: owner, op: op),
                token_stride: try UInt64(tokenStride, "tokenStride", of: owner, op: op),
                head_stride: try UInt64(headStride, "headStride", of: owner, op: op))
        }

        init(_ descriptor: mnk_heads_view_strides) {
            self.init(
                sequences: Int(clamping: descriptor.sequences), tokens: Int(clamping: descriptor.tokens),
                heads: Int(clamping: descriptor.heads), headDim: Int(clamping: descriptor.head_dim),
                offset: Int(clamping: descriptor.offset), sequenceStride: Int(clamping: descriptor.sequence_stride),
                tokenStride: Int(clamping: descriptor.token_stride), headStride: Int(clamping: descriptor.head_stride))
        }
    }

    /// The memory.
    public var tensor: Tensor
    /// The order of its axes.
    public var layout: KVLayout
    /// If there are any, they replace the tensor's shape and the layout.
    public var strides: Strides?

    func descriptor(of owner: String = "", op: String) throws(KernelError) -> mnk_heads_view {
        mnk_heads_view(
            tensor: tensor.handle.pointer,
            layout: layout.code,
            has_strides: strides != nil,
            strides: try strides?.descriptor(of: owner, op: op) ?? mnk_heads_view_strides())
    }
}

/// Cache memory that the caller owns.
///
/// Shapes, where the first axis may be left out for a single sequence:
/// - head-major: `[sequences, heads, capacity, headDim]`
/// - token-major: `[sequences, capacity, heads, headDim]`
///
/// A linear cache keeps position p in slot p. A ring always keeps its first `pinned` positions, and the newest of the
/// others: `slot(p) = p < pinned ? p : pinned + (p - pinned) mod (capacity - pinned)`.
///
/// In a latent cache (multi-head latent attention) the first ``latentDim`` elements of a key are also its value, and
/// are stored once. ``values`` holds them, and ``keys`` the rest of each key; without values, ``keys`` holds whole
/// keys.
///
/// ```swift
/// let memory = try Tensor.zeros(shape: [8, 4096, 128], dtype: .float16, on: device)
/// let view = KVCacheView(keys: memory, layout: .headMajor, wrap: .ring, pinned: 4)
/// ```
public struct KVCacheView: Sendable {
    /// Memory of the keys.
    public var keys: Tensor
    /// Memory of the values, which may have another head dim; `nil` for keys only.
    public var values: Tensor?
    /// The order of axes.
    public var layout: KVLayout
    /// Where positions beyond the last slot go.
    public var wrap: KVWrap
    /// First positions that a ring never overwrites.
    public var pinned: Int
    /// How many first elements of a key are also its value; 0 if keys and values are separate.
    public var latentDim: Int

    /// A view of this memory. It is checked when it is used.
    public init(
        keys: Tensor, values: Tensor? = nil, layout: KVLayout = .headMajor, wrap: KVWrap = .linear, pinned: Int = 0,
        latentDim: Int = 0
    ) {
        self.keys = keys
        self.values = values
        self.layout = layout
        self.wrap = wrap
        self.pinned = pinned
        self.latentDim = latentDim
    }

    func descriptor(of owner: String = "", op: String) throws(KernelError) -> mnk_kv_cache_view {
        mnk_kv_cache_view(
            keys: keys.handle.pointer,
            values: values?.handle.pointer,
            layout: layout.code,
            wrap: wrap.code,
            pinned: try UInt32(pinned, "pinned", of: owner, op: op),
            latent_dim: try UInt32(latentDim, "latentDim", of: owner, op: op))
    }
}
