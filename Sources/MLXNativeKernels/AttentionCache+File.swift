#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension AttentionCache {
    /// Writes the cache to a file that its owner alone can read.
    ///
    /// Wait for submitted work first: what it has not stored yet is not saved. A file that is there is replaced once
    /// all is written, and left as it was where the call throws.
    ///
    /// ```swift
    /// try done.wait()
    /// try cache.save(to: path)
    /// let again = try AttentionCache(contentsOf: path, atMost: 1 << 30, on: device)
    /// ```
    ///
    /// - Throws: ``KernelError`` where the file cannot be written, a sequence is suspect, or the cache is changed
    ///   meanwhile.
    public func save(to path: String) throws(KernelError) {
        try checkPath(path)
        try calling { mnk_cache_save(handle.pointer, path, $0) }
    }

    /// The cache of a file, which goes on where the saved one was.
    ///
    /// The file may come from anywhere: its numbers, its length and its checksum are checked, and nothing is made of a
    /// file that is damaged or forged.
    ///
    /// - Parameters:
    ///   - path: A file that ``save(to:)`` wrote.
    ///   - bytes: The most that keys and values may take in memory.
    ///   - device: The device whose memory it uses.
    /// - Throws: ``KernelError`` where there is no such file, it is not whole, or the cache is larger than allowed.
    public convenience init(
        contentsOf path: String, atMost bytes: Int, on device: KernelDevice
    ) throws(KernelError) {
        try checkPath(path)
        let bytes = try UInt64(bytes, "atMost", op: "AttentionCache")
        try self.init(
            Handle(mnk_cache_release) { mnk_cache_make_from_path(device.handle.pointer, path, bytes, $0) })
    }
}

/// C would see a path that ends at the zero.
private func checkPath(_ path: String) throws(KernelError) {
    guard !path.utf8.contains(0) else {
        throw .invalid(
            op: "AttentionCache", what: "the path names no file", got: "a path with a zero in it",
            expected: "the name of a file", fix: "Pass the path of a file.")
    }
}
