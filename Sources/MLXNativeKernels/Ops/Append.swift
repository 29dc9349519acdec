#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension KernelEncoder {
    /// Writes new tokens at a sequence's next position, which advances when the step is submitted.
    ///
    /// ```swift
    /// try step.append(keys: k, values: v, to: cache)                        // [tokens, kvHeads, headDim]
    /// try step.append(keys: k.headMajor, values: v.headMajor, to: cache)    // MLX's [1, kvHeads, tokens, headDim]
    /// ```
    ///
    /// - Parameters:
    ///   - keys: `[tokens, kvHeads, headDim]`, `[kvHeads, headDim]` for one token, or a view of another layout; any float
    ///     type.
    ///   - values: The same tokens with the cache's `valueHeadDim`, in the element type of the keys.
    ///   - cache: Where they go.
    ///   - sequence: Which of its sequences they continue; `nil` means the only one.
    /// - Throws: ``KernelError`` if shapes do not fit the cache, if it is full and does not overwrite, if it has several
    ///   sequences and none is named, or if causal attention of this step has already read the sequence without these
    ///   tokens, other than as a prefix.
    public func append(
        keys: some HeadsViewConvertible, values: some HeadsViewConvertible, to cache: AttentionCache,
        sequence: Int? = nil
    ) throws(KernelError) {
        try append(keys: keys, values: values, to: cache, listed: sequence.map { [$0] })
    }

    /// Writes new tokens of several sequences, each at its sequence's next position, in the order of the list.
    ///
    /// A sequence that is listed again continues after its earlier entry.
    ///
    /// ```swift
    /// try step.append(keys: k, values: v, to: cache, sequences: [0, 2])                     // one token of each
    /// try step.append(keys: k, values: v, to: cache, sequences: [0, 2], rowCounts: [5, 1])  // 6 tokens in all
    /// ```
    ///
    /// - Parameters:
    ///   - keys: One token for each listed sequence, `[sequences.count, kvHeads, headDim]`; the same number for each,
    ///     `[sequences.count, tokens, kvHeads, headDim]`; or, with row counts, the tokens of all sequences one after
    ///     another. Any float type.
    ///   - values: The same tokens with the cache's `valueHeadDim`, in the element type of the keys.
    ///   - cache: Where they go.
    ///   - sequences: The sequences that tokens continue.
    ///   - rowCounts: How many tokens each listed sequence has; 0 leaves one out. `nil` means one token for each, or as
    ///     many as `keys` has for each of its sequences.
    /// - Throws: ``KernelError`` if shapes or counts do not fit, if a sequence is unknown or full, or if causal attention
    ///   of this step has already read one without these tokens, other than as a prefix.
    public func append(
        keys: some HeadsViewConvertible, values: some HeadsViewConvertible, to cache: AttentionCache,
        sequences: [Int], rowCounts: [Int]? = nil
    ) throws(KernelError) {
        try append(keys: keys, values: values, to: cache, listed: sequences, rowCounts: rowCounts)
    }

    private func append(
        keys: some HeadsViewConvertible, values: some HeadsViewConvertible, to cache: AttentionCache,
        listed sequences: [Int]?, rowCounts: [Int]? = nil
    ) throws(KernelError) {
        let step = CacheStep(
            keys: keys.headsView, values: values.headsView, cache: cache, sequences: sequences, rowCounts: rowCounts)
        try record(step, op: "AttentionCache.append", mnk_encoder_append)
    }

    /// Replaces one sequence of a cache with a copy of another: a prompt that several answers share is processed once.
    ///
    /// - Throws: ``KernelError`` if a sequence is unknown, or if the source is suspect.
    public func copy(sequence source: Int, to target: Int, in cache: AttentionCache) throws(KernelError) {
        let op = "AttentionCache.copy"
        let source = try cache.number(ofSequence: source, op: op)
        let target = try cache.number(ofSequence: target, op: op)
        try record { mnk_encoder_copy_sequence($0, cache.handle.pointer, source, target, $1) }
    }

    /// Replaces a sequence of one cache with a copy of a sequence of another, such as a prompt that is kept in a cache of
    /// its own.
    ///
    /// Both caches have the same heads, head dims, storage, means and channel scales. Their capacities may differ, as long
    /// as the target holds every position that is copied. A sequence that a ring has overwritten in part fits only a ring
    /// with the same number of pinned positions.
    ///
    /// ```swift
    /// try step.copy(sequence: 0, of: prompts, to: 2, of: chats)
    /// ```
    ///
    /// - Throws: ``KernelError`` if a sequence is unknown, the source is suspect, the caches differ, or the target cannot
    ///   hold the sequence.
    public func copy(
        sequence source: Int, of cache: AttentionCache, to target: Int, of other: AttentionCache
    ) throws(KernelError) {
        let op = "AttentionCache.copy"
        let (source, target) = (try UInt32(source, "sequence", op: op), try UInt32(target, "sequence", op: op))
        try record {
            mnk_encoder_copy_sequence_to_cache($0, cache.handle.pointer, source, other.handle.pointer, target, $1)
        }
    }

    /// Makes a new cache of a larger capacity with the contents of this one: the same sequences at the same positions.
    ///
    /// Only this step can use the new cache until it is submitted: to others, its sequences are suspect. The old cache
    /// does not change, and recorded steps keep using it: record them again. A ring's overwritten positions stay lost.
    /// All sequences that stand at the same position are copied in one dispatch for keys and values, and one for their
    /// scales; a ring with pinned positions that has wrapped takes two of each.
    ///
    /// ```swift
    /// var larger: AttentionCache?
    /// try device.encode { step in larger = try step.grow(cache, toCapacity: 8192) }
    /// ```
    ///
    /// - Throws: ``KernelError`` if the capacity is smaller than the cache's, a sequence is suspect, the step is being
    ///   recorded, or memory runs out.
    public func grow(_ cache: AttentionCache, toCapacity capacity: Int) throws(KernelError) -> AttentionCache {
        let capacity = try UInt32(capacity, "capacity", op: "AttentionCache.grown")
        return try made { mnk_encoder_make_grown_cache($0, cache.handle.pointer, capacity, $1) }
    }

    /// Makes a new, quantized cache with the contents of a dense one: the same sequences, positions, slots, ring and
    /// pinned positions.
    ///
    /// Only this step can use the new cache until it is submitted: to others, its sequences are suspect. A recorded step
    /// quantizes again with every run, and replaces what the new cache holds. Sequences of the same length are quantized
    /// in one dispatch, keys and values together; with means or channel scales there is one for each sequence. A storage
    /// that quantizes only keys or only values keeps the others in their element type.
    ///
    /// ```swift
    /// let small = try encoder.quantize(cache, as: .quantizedValues(.turbo, .bits4, keys: .float16))
    /// ```
    ///
    /// - Parameters:
    ///   - cache: A dense cache.
    ///   - storage: How the new one stores.
    ///   - calibration: Means and channel scales, which are copied.
    /// - Throws: ``KernelError`` if the cache is quantized already, a sequence is suspect, the storage is dense, has
    ///   another element type than the cache, or does not support these head dims, or if memory runs out.
    public func quantize(
        _ cache: AttentionCache, as storage: AttentionCache.Storage,
        calibration: AttentionCache.Calibration = AttentionCache.Calibration()
    ) throws(KernelError) -> AttentionCache {
        let quantization = try storage.quantization(calibration)
        let isOther = storage.elementType != .uint8 && storage.elementType != cache.storage.elementType
        let expected = "quantized storage, with \(cache.storage.elementType) for what it keeps"
        guard let quantization else {
            throw .invalid(
                op: "AttentionCache.quantized", what: "the storage quantizes nothing", got: "\(storage)",
                expected: expected, fix: "Pass a storage that quantizes keys, values or both.")
        }
        guard !isOther else {
            throw .invalid(
                op: "AttentionCache.quantized", what: "the storage has another element type than the cache",
                got: "\(storage)", expected: expected, fix: "Pass the element type of the cache.")
        }
        return try made { encoder, error in
            withExtendedLifetime(calibration) {
                withUnsafePointer(to: quantization) {
                    mnk_encoder_make_quantized_cache(encoder, cache.handle.pointer, $0, error)
                }
            }
        }
    }

    /// A cache that a call of this encoder makes.
    private func made(_ make: (OpaquePointer, ErrorOut) -> OpaquePointer?) throws(KernelError) -> AttentionCache {
        var pointer: OpaquePointer?
        try record { encoder, error in
            pointer = make(encoder, error)
            return pointer != nil
        }
        return try AttentionCache(Handle(mnk_cache_release) { _ in pointer })
    }
}
