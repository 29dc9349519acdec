#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Attention over a part of the keys, for ``MergePartials`` to finish.
///
/// Parts may come from several caches or devices. Each says where its rows are (``AttendedSequence/position``), so that
/// causality, windows and slopes are those of the whole sequence. For caches of one device,
/// ``KernelEncoder/attend(_:over:sequences:rowCounts:after:into:_:logSumExp:)`` does all of this in one call.
///
/// One allocation can hold all parts, with an axis of parts before the others:
///
/// ```swift
/// let parts = try AttentionPartials.zeros(shape: [2, 32, 128], on: device)      // 2 parts, 32 heads, head dim 128
/// // The row follows 100 keys in `old` and is the last of 7 in `new`.
/// let first = FlashDecode(
///     q, over: .dense(old), sequences: [.init(length: 100, position: 106)], intoPartials: try parts.part(0))
/// let second = FlashDecode(
///     q, over: .dense(new), sequences: [.init(length: 7, position: 6)], intoPartials: try parts.part(1))
/// let done = try device.encode { step in
///     try step.encode(first)
///     try step.encode(second)
///     try step.encode(MergePartials(parts, into: out))
/// }
/// ```
public struct AttentionPartials: Sendable {
    /// Results before the division: `float32`, the axes of the queries with the head dim of values.
    public var sums: Tensor
    /// For each row rowMax, the largest score times log2(e) or at most 8 less, and rowSum, the sum of
    /// `2^(score * log2(e) - rowMax)`: `float32`, the same axes with a last axis of 2. A row that sees no key has
    /// rowSum 0.
    public var stats: Tensor

    /// Partials over this memory. They are checked when they are used.
    public init(sums: Tensor, stats: Tensor) {
        self.sums = sums
        self.stats = stats
    }

    /// New memory for sums of this shape, and for their stats.
    ///
    /// - Throws: ``KernelError`` for an impossible shape, or if memory runs out.
    public static func zeros(shape: [Int], on device: KernelDevice) throws(KernelError) -> AttentionPartials {
        AttentionPartials(
            sums: try Tensor.zeros(shape: shape, on: device),
            stats: try Tensor.zeros(shape: shape.dropLast() + [2], on: device))
    }

    /// One part of those along the outermost axis, without that axis, sharing memory.
    ///
    /// - Throws: ``KernelError`` if there is no such part.
    public func part(_ index: Int) throws(KernelError) -> AttentionPartials {
        AttentionPartials(sums: try sums.entry(index), stats: try stats.entry(index))
    }
}

extension Tensor {
    /// One entry of the outermost axis, without that axis.
    fileprivate func entry(_ index: Int) throws(KernelError) -> Tensor {
        guard let count = shape.first, (0..<count).contains(index) else {
            throw .invalid(
                op: "AttentionPartials", what: "there is no such part", got: "part \(index) of \(self)",
                expected: "less than \(shape.first ?? 0)", fix: "Pass the index of a part.")
        }
        return try self[index..<index + 1].reshaped(Array(shape.dropFirst()))
    }
}

/// The outputs of attention, in the types of the C API.
struct AttentionResults: Sendable {
    var output: Tensor?
    var partials: AttentionPartials?
    var logSumExp: Tensor?

    var descriptor: mnk_attention_results {
        mnk_attention_results(
            into: output?.handle.pointer,
            partial_sums: partials?.sums.handle.pointer,
            partial_stats: partials?.stats.handle.pointer,
            log_sum_exp: logSumExp?.handle.pointer)
    }
}
