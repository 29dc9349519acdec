#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension AttentionCache {
    /// The position that the next appended token gets, in a cache of one sequence.
    ///
    /// - Throws: ``KernelError`` if the cache has several sequences.
    public var nextPosition: Int {
        get throws(KernelError) { Int(clamping: try state(ofSequence: nil).next_position) }
    }

    /// The number of positions that are kept, in a cache of one sequence.
    ///
    /// - Throws: ``KernelError`` if the cache has several sequences.
    public var count: Int {
        get throws(KernelError) { Int(clamping: try state(ofSequence: nil).count) }
    }

    /// Whether work that appended to any sequence has failed since that sequence's last truncate or reset.
    public var isSuspect: Bool { mnk_cache_is_suspect(handle.pointer) }

    /// The position that a sequence's next appended token gets.
    ///
    /// - Throws: ``KernelError`` for an unknown sequence.
    public func nextPosition(ofSequence sequence: Int) throws(KernelError) -> Int {
        Int(clamping: try state(ofSequence: sequence).next_position)
    }

    /// The number of positions that are kept of a sequence.
    ///
    /// - Throws: ``KernelError`` for an unknown sequence.
    public func count(ofSequence sequence: Int) throws(KernelError) -> Int {
        Int(clamping: try state(ofSequence: sequence).count)
    }

    /// Whether work that appended to a sequence has failed since its last truncate or reset.
    ///
    /// - Throws: ``KernelError`` for an unknown sequence.
    public func isSuspect(sequence: Int) throws(KernelError) -> Bool {
        try state(ofSequence: sequence).is_suspect
    }

    private func state(ofSequence sequence: Int?) throws(KernelError) -> mnk_sequence_state {
        let number = try number(ofSequence: sequence, op: "AttentionCache")
        var state = mnk_sequence_state()
        try calling { mnk_cache_get_sequence(handle.pointer, number, &state, $0) }
        return state
    }

    /// Removes a sequence's tokens at `position` and after it, as when speculative decoding rolls back.
    ///
    /// - Parameters:
    ///   - position: The position that the next appended token then gets.
    ///   - sequence: Which sequence is cut; `nil` means the only one of the cache.
    /// - Throws: ``KernelError`` for a position not yet reached, for one that a ring has overwritten, for one after which
    ///   the next token of a sliding-window cache would not see its whole window, for an unknown sequence, and for `nil`
    ///   if the cache has several.
    public func truncate(to position: Int, sequence: Int? = nil) throws(KernelError) {
        let position = try UInt64(position, "position", op: "AttentionCache")
        let number = try number(ofSequence: sequence, op: "AttentionCache")
        try calling { mnk_cache_truncate(handle.pointer, position, number, $0) }
    }

    /// Removes all tokens of all sequences.
    public func reset() { mnk_cache_reset(handle.pointer) }

    /// Removes all tokens of one sequence.
    ///
    /// - Throws: ``KernelError`` for an unknown sequence.
    public func reset(sequence: Int) throws(KernelError) {
        let number = try number(ofSequence: sequence, op: "AttentionCache")
        try calling { mnk_cache_reset_sequence(handle.pointer, number, $0) }
    }

    /// The number of a sequence in the type of the C API; `nil` is its `MNK_ONLY_SEQUENCE`, which no number becomes.
    func number(ofSequence sequence: Int?, op: String) throws(KernelError) -> UInt32 {
        guard let sequence else { return .max }
        guard let number = UInt32(exactly: sequence), number != .max else {
            throw .invalid(
                op: op, what: "the sequence is not in the cache", got: "sequence \(sequence)",
                expected: "less than \(dimensions.sequences)", fix: "Pass a sequence that the cache holds.")
        }
        return number
    }
}
