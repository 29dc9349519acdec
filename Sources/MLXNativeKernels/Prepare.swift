#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension KernelDevice {
    /// Compiles the kernels of steps over caches ahead of time, and measures which are the fastest if asked to.
    ///
    /// Without it, a step compiles what it needs when it is first recorded. Steps that differ from what was prepared work
    /// as well. The call does not block the calling thread while it waits; canceling the task does not stop it. It does
    /// not change the caches.
    ///
    /// ```swift
    /// let rotary = RotaryEmbedding(base: 1e6)
    /// let ready = try await device.prepare(for: caches, queryHeads: 32, dtype: .float16, rotary: rotary, tuning: .measure)
    /// print(ready)        // 9 kernels, 3 shapes measured, 0 known, 0.2 s
    /// ```
    ///
    /// - Parameters:
    ///   - caches: Caches of this device, such as one for each layer.
    ///   - queryHeads: Heads of the queries of steps; `nil` or 0 means the number of KV heads.
    ///   - rows: The most tokens of a sequence in one step. Steps with one token are always prepared.
    ///   - dtype: The type of the queries, results, keys and values of steps: a float type.
    ///   - options: How steps attend.
    ///   - rotary: How steps rotate queries and keys; `nil` if they do not.
    ///   - tuning: How attention chooses kernels, splits and sizes of threadgroups.
    ///   - tuningFile: The path of the file for measured choices; `nil` means a file in the user's caches folder.
    /// - Returns: What was prepared.
    /// - Throws: ``KernelError`` if a cache belongs to another device, no step can have these rows, heads or options, a
    ///   kernel cannot be compiled, or `tuningFile` names a file that is no tuning file. A file that cannot be written is not an error:
    ///   ``PreparationSummary/isKept`` reports it.
    @discardableResult
    public func prepare(
        for caches: [AttentionCache], queryHeads: Int? = nil, rows: Int = 1, dtype: ElementType = .float32,
        options: AttentionOptions = AttentionOptions(), rotary: RotaryEmbedding? = nil, tuning: Tuning = .table,
        tuningFile: String? = nil
    ) async throws(KernelError) -> PreparationSummary {
        let preparation = Preparation(
            caches: caches, queryHeads: queryHeads ?? 0, rows: rows, dtype: dtype, options: options, rotary: rotary,
            tuning: tuning, tuningFile: tuningFile)
        return try await blocking { () throws(KernelError) in try preparation.prepare(self) }
    }
}

/// What ``KernelDevice/prepare(for:queryHeads:rows:dtype:options:rotary:tuning:tuningFile:)`` has done.
public struct PreparationSummary: Sendable, Hashable {
    /// Kernels that are ready to run.
    public let kernels: Int
    /// Shapes that the call measured.
    public let measured: Int
    /// Shapes that were measured before.
    public let known: Int
    /// Time that the call took, in seconds.
    public let seconds: Double
    /// Whether there are measured choices and the file holds them. Choices that could not be kept are used until the
    /// device is released.
    public let isKept: Bool
    /// The whole summary in one line: `9 kernels, 3 shapes measured, 0 known, 0.2 s`.
    public let description: String

    fileprivate init(_ summary: mnk_preparation_summary) {
        kernels = Int(clamping: summary.kernels)
        measured = Int(clamping: summary.measured)
        known = Int(clamping: summary.known)
        seconds = summary.seconds
        isKept = summary.is_kept
        description = withUnsafePointer(to: summary) { String(releasing: mnk_preparation_summary_copy_text($0)) }
    }
}

extension PreparationSummary: CustomStringConvertible {}

/// The arguments of a call, for another thread.
private struct Preparation: Sendable {
    let caches: [AttentionCache]
    let queryHeads: Int
    let rows: Int
    let dtype: ElementType
    let options: AttentionOptions
    let rotary: RotaryEmbedding?
    let tuning: Tuning
    let tuningFile: String?

    /// Blocks until the device is prepared.
    func prepare(_ device: KernelDevice) throws(KernelError) -> PreparationSummary {
        let op = "prepare"
        // The C API reads 0 as a missing number.
        guard rows != 0 else {
            throw .invalid(
                op: op, what: "the rows do not fit a cache", got: "0 rows", expected: "at least 1",
                fix: "Pass the most tokens that a step appends to a sequence.")
        }
        if let tuningFile { try checkPath(tuningFile, op: op) }
        let memory = CallMemory()
        defer { withExtendedLifetime((self, memory)) {} }
        var preparation = mnk_preparation(
            caches: memory.keep(caches.map { Optional($0.handle.pointer) }), cache_count: caches.count,
            query_heads: try UInt32(queryHeads, "queryHeads", op: op), rows: try UInt32(rows, "rows", op: op),
            dtype: dtype.code, options: try options.descriptor(op: op), has_rotary: rotary != nil,
            rotary: try rotary?.descriptor(op: op, in: memory) ?? mnk_rotary_embedding(), tuning: tuning.code,
            tuning_file: memory.keep(tuningFile))
        var summary = mnk_preparation_summary()
        try calling { mnk_device_prepare(device.handle.pointer, &preparation, &summary, $0) }
        return PreparationSummary(summary)
    }
}
