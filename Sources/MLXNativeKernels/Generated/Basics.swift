// Generated from Sources/API by generate.py: change the description instead.
#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// What the elements of a tensor are.
///
/// ```swift
/// ElementType.float16.byteSize        // 2
/// print(ElementType.bfloat16)         // bf16
/// ElementType.bfloat16.rawValue       // "bfloat16"
/// ```
public enum ElementType: String, Sendable, CaseIterable {
    /// IEEE single precision, `float` in a kernel.
    case float32
    /// IEEE half precision, `half` in a kernel.
    case float16
    /// The upper 16 bits of `float32`, `bfloat` in a kernel.
    case bfloat16
    /// Unsigned, 8 bits.
    case uint8
    /// Unsigned, 16 bits.
    case uint16
    /// Unsigned, 32 bits.
    case uint32
    /// Signed, 32 bits.
    case int32

    var code: mnk_dtype {
        switch self {
        case .float32: .MNK_F32
        case .float16: .MNK_F16
        case .bfloat16: .MNK_BF16
        case .uint8: .MNK_U8
        case .uint16: .MNK_U16
        case .uint32: .MNK_U32
        case .int32: .MNK_I32
        }
    }

    init(_ code: mnk_dtype) {
        switch code {
        case .MNK_F32: self = .float32
        case .MNK_F16: self = .float16
        case .MNK_BF16: self = .bfloat16
        case .MNK_U8: self = .uint8
        case .MNK_U16: self = .uint16
        case .MNK_U32: self = .uint32
        case .MNK_I32: self = .int32
        }
    }
}

extension KernelError {
    /// What kind of failure an error is. A program branches on this, never on text.
    public enum Code: String, Sendable, CaseIterable {
        /// The request is invalid. Nothing was encoded, and no memory was changed.
        case invalidArgument
        /// The device or this build lacks a feature.
        case unsupported
        /// Memory could not be allocated.
        case outOfMemory
        /// A file of kernels was not found.
        case libraryNotFound
        /// Kernel source does not compile, or lacks the function.
        case shaderBuild
        /// The device stopped a submission.
        case deviceFault
        /// The device is gone, or accepts no more work from this process; make another.
        case deviceLost
        /// The device stopped a submission that took too long.
        case timeout
        /// A kernel accessed memory that it does not own.
        case pageFault
        /// The system forbids work on the device now, such as while the app is in the background.
        case notPermitted
        /// Waiting here could never end, as in a handler of finished work, or for a command buffer that the app has not
        /// committed.
        case wouldDeadlock

        init(_ code: mnk_error_code) {
            switch code {
            case .MNK_INVALID_ARGUMENT: self = .invalidArgument
            case .MNK_UNSUPPORTED: self = .unsupported
            case .MNK_OUT_OF_MEMORY: self = .outOfMemory
            case .MNK_LIBRARY_NOT_FOUND: self = .libraryNotFound
            case .MNK_SHADER_BUILD: self = .shaderBuild
            case .MNK_DEVICE_FAULT: self = .deviceFault
            case .MNK_DEVICE_LOST: self = .deviceLost
            case .MNK_TIMEOUT: self = .timeout
            case .MNK_PAGE_FAULT: self = .pageFault
            case .MNK_NOT_PERMITTED: self = .notPermitted
            case .MNK_WOULD_DEADLOCK: self = .wouldDeadlock
            }
        }
    }
}

extension LibraryOrigin {
    /// Where compiled kernels were found.
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

        init(_ code: mnk_library_origin) {
            switch code {
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
}
