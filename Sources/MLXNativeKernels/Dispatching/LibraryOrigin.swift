#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Where compiled kernels were found.
///
/// ```swift
/// print(try device.libraryOrigin)    // module bundle (/…/default.metallib)
/// ```
public struct LibraryOrigin: Hashable, Sendable {
    /// The place.
    public let kind: Kind
    /// The file, if it was one. Of embedded text: the compiled file that it replaces, because that has fast math.
    public let path: String?

    /// An origin, such as one to compare with.
    public init(kind: Kind, path: String?) {
        self.kind = kind
        self.path = path
    }
}

extension LibraryOrigin: CustomStringConvertible {
    /// The place, and the file if it was one.
    public var description: String {
        guard let path else { return kind.rawValue }
        guard kind == .embeddedText else { return "\(kind.rawValue) (\(path))" }
        return "\(kind.rawValue), because \(path) was compiled with fast math"
    }
}

extension KernelDevice {
    /// Where the kernels that this package ships were found. Finds them, if nothing has needed them yet.
    ///
    /// - Throws: ``KernelError`` that lists every place which was tried.
    public var libraryOrigin: LibraryOrigin {
        get throws(KernelError) { try KernelLibrary.shipped(on: self).origin }
    }
}
