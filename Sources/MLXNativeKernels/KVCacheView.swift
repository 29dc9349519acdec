#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// The order of axes in memory that holds keys or values.
public enum KVLayout: Sendable, CaseIterable {
    /// Heads outside, tokens inside: `[heads, tokens, headDim]`.
    case headMajor
    /// Tokens outside, heads inside: `[tokens, heads, headDim]`.
    case tokenMajor

    var code: mnk_kv_layout { self == .headMajor ? .MNK_HEAD_MAJOR : .MNK_TOKEN_MAJOR }
}

/// Where positions beyond the last slot go.
public enum KVWrap: Sendable, CaseIterable {
    /// An error: position p is in slot p, and there is no slot beyond the capacity.
    case linear
    /// Around: the newest positions take the slots of the oldest.
    case ring

    var code: mnk_kv_wrap { self == .linear ? .MNK_LINEAR : .MNK_RING }
}

/// Cache memory that the caller owns.
///
/// Shapes, where the first axis may be left out for a single sequence:
/// - head-major: `[sequences, heads, capacity, headDim]`
/// - token-major: `[sequences, capacity, heads, headDim]`
///
/// A ring always keeps its first `pinned` positions, and the newest of the others.
///
/// In a latent cache (multi-head latent attention) the first ``latentDim`` elements of a key are also its value.
/// ``values`` holds them, and ``keys`` the rest of each key; without values, ``keys`` holds whole keys.
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

    func descriptor(op: String) throws(KernelError) -> mnk_kv_cache_view {
        mnk_kv_cache_view(
            keys: keys.handle.pointer, values: values?.handle.pointer,
            layout: layout.code, wrap: wrap.code, pinned: try UInt32(pinned, "pinned", op: op),
            latent_dim: try UInt32(latentDim, "latentDim", op: op))
    }
}
