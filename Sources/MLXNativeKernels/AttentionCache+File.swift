import Foundation

#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension AttentionCache {
    /// Writes the cache to a file.
    ///
    /// Waits for submitted work that writes the cache; ``saveWhenFinished(to:)-(String)`` suspends instead. Only its owner can
    /// read a new file. An existing file is replaced once everything is written, keeps its permissions, and is left
    /// unchanged if the call throws. Symbolic links are followed, except links of other users that do not own the link's
    /// folder. Inside the closure of a step, the file has the state before the step.
    ///
    /// ```swift
    /// try cache.save(to: url)
    /// let again = try AttentionCache(contentsOf: url, atMost: 1 << 30, on: device)
    /// ```
    ///
    /// - Throws: ``KernelError`` if the file cannot be written, a sequence is suspect, the cache is changed meanwhile, or
    ///   waiting could never end (``KernelError/Code/wouldDeadlock``).
    public func save(to path: String) throws(KernelError) {
        try checkPath(path, op: "AttentionCache")
        try calling { mnk_cache_save(handle.pointer, path, $0) }
    }

    /// Writes the cache to a file as ``save(to:)-(String)`` does.
    ///
    /// - Throws: ``KernelError`` as for a path, and for a URL that names no file.
    public func save(to url: URL) throws(KernelError) {
        try save(to: try filePath(of: url))
    }

    /// Writes the cache to a file as ``save(to:)-(String)`` does, without blocking the calling thread.
    ///
    /// Canceling the task does not stop it.
    ///
    /// - Throws: ``KernelError`` as ``save(to:)-(String)`` does.
    public func saveWhenFinished(to path: String) async throws(KernelError) {
        try await blocking { () throws(KernelError) in try self.save(to: path) }
    }

    /// Writes the cache to a file as ``save(to:)-(URL)`` does, without blocking the calling thread.
    ///
    /// Canceling the task does not stop it.
    ///
    /// - Throws: ``KernelError`` as ``save(to:)-(URL)`` does.
    public func saveWhenFinished(to url: URL) async throws(KernelError) {
        try await saveWhenFinished(to: try filePath(of: url))
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
    ///   - path: A file that ``save(to:)-(String)`` wrote.
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

    /// The cache of a file, which continues where the saved one was, as ``init(contentsOf:atMost:capacity:on:)-(String,_,_,_)``.
    ///
    /// - Throws: ``KernelError`` as for a path, and for a URL that names no file.
    public convenience init(
        contentsOf url: URL, atMost bytes: Int, capacity: Int? = nil, on device: KernelDevice
    ) throws(KernelError) {
        try self.init(contentsOf: try filePath(of: url), atMost: bytes, capacity: capacity, on: device)
    }

    /// Loads a cache as ``init(contentsOf:atMost:capacity:on:)-(String,_,_,_)`` does, without blocking the calling thread.
    ///
    /// Canceling the task does not stop it.
    ///
    /// - Throws: ``KernelError`` as the initializer does.
    public static func load(
        contentsOf path: String, atMost bytes: Int, capacity: Int? = nil, on device: KernelDevice
    ) async throws(KernelError) -> AttentionCache {
        try await blocking { () throws(KernelError) in
            try AttentionCache(contentsOf: path, atMost: bytes, capacity: capacity, on: device)
        }
    }

    /// Loads a cache as ``init(contentsOf:atMost:capacity:on:)-(URL,_,_,_)`` does, without blocking the calling thread.
    ///
    /// Canceling the task does not stop it.
    ///
    /// - Throws: ``KernelError`` as the initializer does.
    public static func load(
        contentsOf url: URL, atMost bytes: Int, capacity: Int? = nil, on device: KernelDevice
    ) async throws(KernelError) -> AttentionCache {
        try await load(contentsOf: try filePath(of: url), atMost: bytes, capacity: capacity, on: device)
    }
}

/// The path of a URL, which must be that of a file.
private func filePath(of url: URL) throws(KernelError) -> String {
    guard url.isFileURL else {
        throw .invalid(
            op: "AttentionCache", what: "the URL names no file", got: url.absoluteString, expected: "a file URL",
            fix: "Pass the URL of a file, such as URL(fileURLWithPath:).")
    }
    return url.path
}

extension KernelError {
    /// The C API reads 0 as the capacity of the saved cache.
    fileprivate static var noCapacity: KernelError {
        .invalid(
            op: "AttentionCache", what: "the cache would hold nothing", got: "a capacity of 0", expected: "at least 1",
            fix: "Pass a capacity, or leave it out.")
    }
}
