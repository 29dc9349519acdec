#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension AttentionCache {
    /// Writes the cache to a file.
    ///
    /// Waits for submitted work that writes the cache; ``saveWhenFinished(to:)`` suspends instead. Only its owner can
    /// read a new file. An existing file is replaced once everything is written, keeps its permissions, and is left
    /// unchanged if the call throws. Symbolic links are followed.
    ///
    /// ```swift
    /// try cache.save(to: path)
    /// let again = try AttentionCache(contentsOf: path, atMost: 1 << 30, on: device)
    /// ```
    ///
    /// - Throws: ``KernelError`` if the file cannot be written, a sequence is suspect, the cache is changed meanwhile, or
    ///   waiting could never end (``KernelError/Code/wouldDeadlock``).
    public func save(to path: String) throws(KernelError) {
        try checkPath(path, op: "AttentionCache")
        try calling { mnk_cache_save(handle.pointer, path, $0) }
    }

    /// Writes the cache to a file as ``save(to:)`` does, without blocking the calling thread.
    ///
    /// Canceling the task does not stop it.
    ///
    /// - Throws: ``KernelError`` as ``save(to:)`` does.
    public func saveWhenFinished(to path: String) async throws(KernelError) {
        try await blocking { () throws(KernelError) in try self.save(to: path) }
    }

    /// The cache of a file, which continues where the saved one was.
    ///
    /// The file may come from an untrusted source. The call checks its numbers, length and checksum, and throws if the
    /// file is damaged or malformed. The checksum does not detect a deliberate change of the stored vectors.
    ///
    /// A sliding-window cache is restored with its window, and with the largest row and draft counts that its capacity
    /// allows.
    ///
    /// - Parameters:
    ///   - path: A file that ``save(to:)`` wrote.
    ///   - bytes: The most that keys and values may take in memory.
    ///   - capacity: Another capacity than that of the saved cache, one that holds every position that the file holds.
    ///   - device: The device whose memory it uses.
    /// - Throws: ``KernelError`` if there is no such file, it is incomplete, the cache is larger than allowed, or the
    ///   capacity is too small for what the file holds.
    public convenience init(
        contentsOf path: String, atMost bytes: Int, capacity: Int? = nil, on device: KernelDevice
    ) throws(KernelError) {
        try checkPath(path, op: "AttentionCache")
        let bytes = try UInt64(bytes, "atMost", op: "AttentionCache")
        let slots = try UInt32(capacity ?? 0, "capacity", op: "AttentionCache")
        guard capacity != 0 else { throw .noCapacity }
        try self.init(
            Handle(mnk_cache_release) { mnk_cache_make_from_path(device.handle.pointer, path, bytes, slots, $0) })
    }
}

extension KernelError {
    /// The C API reads 0 as the capacity of the saved cache.
    fileprivate static var noCapacity: KernelError {
        .invalid(
            op: "AttentionCache", what: "the cache would hold nothing", got: "a capacity of 0", expected: "at least 1",
            fix: "Pass a capacity, or leave it out.")
    }
}
