#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// The caller's own compiled kernels.
///
/// The source is Metal Shading Language with five macros for what only a Metal compiler parses; they need no include:
/// `export_kernel(f)` or `instantiate_kernel("name", f, type…)` for each kernel that can be dispatched,
/// `pipeline_constant(type, name, index);` for a function constant, `threadgroup_array(type, name, count)` for storage
/// in a kernel and `[[threadgroup_memory(n)]]` for a parameter.
///
/// A device compiles a source or a file once and keeps it until ``KernelDevice/clearKernels()``.
///
/// ```swift
/// let library = try KernelLibrary(text: source, label: "scaling", on: device)
/// try device.encode { step in
///     try step.dispatch("scale", in: library, buffers: [.readWrite(x, at: 0)], threads: GridSize(x.count))
/// }
/// ```
public final class KernelLibrary: Sendable {
    let handle: Handle

    private init(_ make: (ErrorOut) -> OpaquePointer?) throws(KernelError) {
        handle = try Handle(mnk_library_release, make)
    }

    /// Compiles kernels from source; the label names them in messages.
    ///
    /// - Throws: ``KernelError`` with the code `shaderBuild` and the compiler's message if it does not compile.
    public convenience init(text: String, label: String, on device: KernelDevice) throws(KernelError) {
        try checkText(text, "the source", op: "KernelLibrary")
        try checkText(label, "the label", op: "KernelLibrary")
        try self.init { mnk_library_make_from_text(device.handle.pointer, text, label, $0) }
    }

    /// Loads kernels from a file.
    ///
    /// - Throws: ``KernelError`` with the code `libraryNotFound` if there is no such file, or `shaderBuild`.
    public convenience init(path: String, on device: KernelDevice) throws(KernelError) {
        try checkPath(path, op: "KernelLibrary")
        try self.init { mnk_library_make_from_path(device.handle.pointer, path, $0) }
    }

    /// The kernels that this package ships.
    ///
    /// - Throws: ``KernelError`` if they cannot be found or compiled.
    public static func shipped(on device: KernelDevice) throws(KernelError) -> KernelLibrary {
        try KernelLibrary { mnk_library_make_shipped(device.handle.pointer, $0) }
    }

    /// Where its compiled kernels were found.
    public var origin: LibraryOrigin {
        let path = String(cString: mnk_library_origin_path(handle.pointer))
        return LibraryOrigin(kind: .init(mnk_library_get_origin(handle.pointer)), path: path.isEmpty ? nil : path)
    }

    /// The names that can be dispatched.
    public var functionNames: [String] {
        (0..<mnk_library_function_count(handle.pointer)).map {
            String(cString: mnk_library_function_name(handle.pointer, $0))
        }
    }
}
