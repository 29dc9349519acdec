#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension AttentionCache {
    /// The position that the next appended token gets, in the only or first sequence.
    public var nextPosition: Int { nextPosition(ofSequence: 0) }

    /// The number of positions that are kept, in the only or first sequence.
    public var count: Int { count(ofSequence: 0) }

    /// Whether work that appended to the only or first sequence has failed since its last truncate or reset.
    public var isSuspect: Bool { isSuspect(sequence: 0) }

    /// The position that a sequence's next appended token gets; 0 for an unknown sequence.
    public func nextPosition(ofSequence sequence: Int) -> Int {
        Int(clamping: mnk_cache_next_position(handle.pointer, UInt32(clampingUnknown: sequence)))
    }

    /// The number of positions that are kept of a sequence; 0 for an unknown sequence.
    public func count(ofSequence sequence: Int) -> Int {
        Int(clamping: mnk_cache_count(handle.pointer, UInt32(clampingUnknown: sequence)))
    }

    /// Whether work that appended to a sequence has failed since its last truncate or reset.
    public func isSuspect(sequence: Int) -> Bool {
        mnk_cache_is_suspect(handle.pointer, UInt32(clampingUnknown: sequence))
    }

    /// Removes a sequence's tokens at `position` and after it, as when speculative decoding rolls back.
    ///
    /// - Throws: ``KernelError`` for a position not yet reached, for one that a ring has overwritten, for one after which
    ///   the next token of a sliding-window cache would not see its whole window, and for an unknown sequence.
    public func truncate(to position: Int, sequence: Int = 0) throws(KernelError) {
        let position = try UInt64(position, "position", op: "AttentionCache")
        let sequence = try UInt32(sequence, "sequence", op: "AttentionCache")
        try calling { mnk_cache_truncate(handle.pointer, position, sequence, $0) }
    }

    /// Removes all tokens of all sequences.
    public func reset() { mnk_cache_reset(handle.pointer) }

    /// Removes all tokens of one sequence.
    ///
    /// - Throws: ``KernelError`` for an unknown sequence.
    public func reset(sequence: Int) throws(KernelError) {
        let sequence = try UInt32(sequence, "sequence", op: "AttentionCache")
        try calling { mnk_cache_reset_sequence(handle.pointer, sequence, $0) }
    }
}

extension UInt32 {
    /// The number, or one that no sequence has: an unknown sequence reads as empty.
    fileprivate init(clampingUnknown sequence: Int) { self = UInt32(exactly: sequence) ?? .max }
}
