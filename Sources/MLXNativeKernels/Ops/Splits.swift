extension AttentionOptions {
    /// Parts that the keys of a sequence are divided into, which are processed in parallel and merged.
    public enum Splits: Sendable, Hashable {
        /// As many as keep the device busy.
        case automatic
        /// This many, 1 to 1024.
        case exactly(Int)

        func count(op: String) throws(KernelError) -> UInt32 {
            guard case .exactly(let count) = self else { return 0 }
            // The C API reads 0 as a missing number and takes no negative ones.
            guard count > 0 else {
                throw .invalid(
                    op: op, what: "the number of splits is out of range", got: "exactly \(count)",
                    expected: "1 to 1024", fix: "Use .automatic, or .exactly(1) for one dispatch.")
            }
            return try UInt32(count, "the number of splits", op: op)
        }
    }
}
