#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension AttentionPartials {
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
            output: output?.handle.pointer,
            partials: partials?.descriptor ?? mnk_attention_partials(),
            log_sum_exp: logSumExp?.handle.pointer)
    }
}
