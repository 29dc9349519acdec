#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// A sequence of a cache whose tokens come before those of other sequences, such as a prompt that conversations share.
///
/// Attention after a prefix gives the results of one sequence with all tokens, whose first ones are stored once:
///
/// ```swift
/// try step.appendAndAttend(
///     queries: q, keys: k, values: v, rotary: rotary, over: conversations, sequences: [0, 1, 2],
///     after: [CachePrefix(prompt)], into: out)
/// ```
///
/// The prefix is not changed. It may be stored otherwise than the cache that continues it, and it may be a sequence of
/// that cache. Both caches must have the same sliding window, or none; otherwise, a call throws unless it passes
/// ``AttentionOptions/window``.
public struct CachePrefix: Sendable {
    /// The cache that holds the prefix.
    public let cache: AttentionCache
    /// Which of its sequences; `nil` means the only one.
    public let sequence: Int?

    /// A sequence of a cache, by default its only one.
    public init(_ cache: AttentionCache, sequence: Int? = nil) {
        self.cache = cache
        self.sequence = sequence
    }

    func descriptor(op: String) throws(KernelError) -> mnk_cache_prefix {
        mnk_cache_prefix(cache: cache.handle.pointer, sequence: try cache.number(ofSequence: sequence, op: op))
    }
}
