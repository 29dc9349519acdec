#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Applies the Walsh-Hadamard transform in natural order to every vector along a tensor's last axis, scaled so that
/// lengths do not change.
///
///     forward   y = H(s .* x) / sqrt(n)        inverse   y = s .* H(x) / sqrt(n)
///
/// where n is a power of two from 4 to 4096 and s are the signs of a codec at this length, or ones. With a codec's
/// signs, forward takes a query to the domain of its codes, and inverse takes the result of attention over them back. At
/// 80, 96, 112 and 192 elements H / sqrt(n) is the rotation by blocks of ``KVCodec/Name/turbo``.
///
/// ``KernelEncoder/attend(_:over:into:_:sequence:logSumExp:)`` and ``FlashDecode`` do both inside: only a kernel of your
/// own that attends over codes needs them.
///
/// ```swift
/// let done = try device.encode { step in
///     try step.encode(Hadamard(queries, signs: .turbo))
///     try step.dispatch("my_attention_over_codes", in: library, buffers: buffers, threads: GridSize(rows))
///     try step.encode(Hadamard(out, signs: .turbo, isInverse: true))
/// }
/// ```
public struct Hadamard: Sendable {
    /// The vectors, of any float type.
    public var source: Tensor
    /// Where results go, of the same shape and any float type; `nil` means in place.
    public var destination: Tensor?
    /// The codec whose signs are used; `nil` means none. ``KVCodec/Name/turbo`` has signs at 32, 64, 80, 96, 112, 128,
    /// 192, 256 and 512, ``KVCodec/Name/mlx1`` at 256 and 512, with ones at other powers of two. Other codecs have none.
    public var signs: KVCodec.Name?
    /// Whether to undo the transform.
    public var isInverse: Bool

    /// A transform. It is checked when it is used.
    public init(_ source: Tensor, into destination: Tensor? = nil, signs: KVCodec.Name? = nil, isInverse: Bool = false)
    {
        self.source = source
        self.destination = destination
        self.signs = signs
        self.isInverse = isInverse
    }

    /// Checks every rule and returns what would run, without running it.
    ///
    /// - Throws: ``KernelError`` for the first broken rule.
    public func plan() throws(KernelError) -> Plan {
        var op = descriptor
        return try Plan { error in withExtendedLifetime(self) { mnk_hadamard_make_plan(&op, error) } }
    }

    fileprivate var descriptor: mnk_hadamard {
        mnk_hadamard(
            from: source.handle.pointer,
            into: destination?.handle.pointer,
            has_signs: signs != nil,
            signs: (signs ?? .turbo).code,
            is_inverse: isInverse)
    }
}

extension KernelEncoder {
    /// Records a ``Hadamard``.
    ///
    /// - Throws: ``KernelError`` for the first broken rule; nothing is recorded then.
    public func encode(_ op: Hadamard) throws(KernelError) {
        var descriptor = op.descriptor
        try record { encoder, error in
            withExtendedLifetime(op) { mnk_encoder_hadamard(encoder, &descriptor, error) }
        }
    }
}
