#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Finishes attention whose keys were attended to in parts, on one device or on several: the result is that of
/// ``FlashDecode`` over all keys at once.
///
/// ```swift
/// let merge = MergePartials(parts, into: out)      // parts: sums [parts, heads, headDim], stats [parts, heads, 2]
/// let done = try device.encode { step in try step.encode(merge) }
/// ```
public struct MergePartials: Sendable {
    /// What is merged, with an axis of parts before those that ``FlashDecode`` writes; at most 1024 parts.
    public var parts: AttentionPartials
    /// A score for each head that takes part in the softmax and adds no value, `float32` `[heads]`; not if results are
    /// partials again.
    public var sinks: Tensor?
    /// Receives the results, in any float type, with the axes of the parts after the first.
    public var output: Tensor?
    /// Receives partial results instead, to merge with others later.
    public var partials: AttentionPartials?
    /// Receives the logarithm of the sum of `e^score` of each row, including a sink; `float32`.
    public var logSumExp: Tensor?

    /// A merge. It is checked when it is used.
    public init(
        _ parts: AttentionPartials, into output: Tensor? = nil, sinks: Tensor? = nil,
        intoPartials partials: AttentionPartials? = nil, logSumExp: Tensor? = nil
    ) {
        self.parts = parts
        self.output = output
        self.sinks = sinks
        self.partials = partials
        self.logSumExp = logSumExp
    }

    /// Checks every rule and returns what would run, without running it.
    ///
    /// - Throws: ``KernelError`` for the first broken rule.
    public func plan() throws(KernelError) -> Plan {
        try Plan { error in withDescriptor { mnk_merge_partials_make_plan($0, error) } }
    }

    fileprivate func withDescriptor<Value>(_ body: (UnsafePointer<mnk_merge_partials>) -> Value) -> Value {
        let results = AttentionResults(output: output, partials: partials, logSumExp: logSumExp).descriptor
        return withUnsafePointer(to: results) { results in
            var op = mnk_merge_partials(
                partials: parts.descriptor,
                sinks: sinks?.handle.pointer,
                results: results)
            return withExtendedLifetime(self) { body(&op) }
        }
    }
}

extension KernelEncoder {
    /// Records a ``MergePartials``.
    ///
    /// - Throws: ``KernelError`` for the first broken rule; nothing is recorded then.
    public func encode(_ op: MergePartials) throws(KernelError) {
        try record { encoder, error in op.withDescriptor { mnk_encoder_merge_partials(encoder, $0, error) } }
    }
}
