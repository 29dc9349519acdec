#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Where compiled kernels were found.
///
/// ```swift
/// print(try device.libraryOrigin)    // module bundle (/…/default.metallib)
/// ```
public struct LibraryOrigin: Hashable, Sendable {
    /// The places, by name.
    public enum Kind: String, Sendable, CaseIterable {
        /// Compiled into the program.
        case program = "the program"
        /// The caller's source, compiled at run time.
        case givenText = "given text"
        /// A file that the caller named.
        case givenFile = "given file"
        /// The bundle that SwiftPM makes of this package's resources.
        case moduleBundle = "module bundle"
        /// The framework that holds this code.
        case frameworkBundle = "framework bundle"
        /// The folder of the image that holds this code.
        case besideCode = "beside the code"
        /// The app's own resources.
        case mainBundle = "main bundle"
        /// The source that this package carries, compiled at run time.
        case embeddedText = "embedded text"
    }

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

extension LibraryOrigin.Kind {
    init(_ origin: mnk_library_origin) {
        switch origin {
        case .MNK_ORIGIN_PROGRAM: self = .program
        case .MNK_ORIGIN_GIVEN_TEXT: self = .givenText
        case .MNK_ORIGIN_GIVEN_FILE: self = .givenFile
        case .MNK_ORIGIN_MODULE_BUNDLE: self = .moduleBundle
        case .MNK_ORIGIN_FRAMEWORK_BUNDLE: self = .frameworkBundle
        case .MNK_ORIGIN_BESIDE_CODE: self = .besideCode
        case .MNK_ORIGIN_MAIN_BUNDLE: self = .mainBundle
        case .MNK_ORIGIN_EMBEDDED_TEXT: self = .embeddedText
        }
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
