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

extension HeadsView {
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
        return HeadsView(tensor, strides: Strides(view.strides))
    }

    /// The same vectors, head-major if the layout is. Strides need no layout.
    func read(as layout: KVLayout) -> HeadsView {
        var view = self
        if layout == .headMajor { view.layout = layout }
        return view
    }
}
