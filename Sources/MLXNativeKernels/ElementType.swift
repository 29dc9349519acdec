#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// What the elements of a ``Tensor`` are.
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
    /// The upper half of a `float32`, `bfloat` in a kernel.
    case bfloat16
    /// Unsigned, 8 bits.
    case uint8
    /// Unsigned, 16 bits.
    case uint16
    /// Unsigned, 32 bits.
    case uint32
    /// Signed, 32 bits.
    case int32

    /// Bytes of one element.
    public var byteSize: Int { mnk_dtype_size(code) }

    /// Whether elements are `float32`, `float16` or `bfloat16`.
    public var isFloatingPoint: Bool { self == .float32 || self == .float16 || self == .bfloat16 }

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

extension ElementType: CustomStringConvertible {
    /// The short name that messages use: `f32`, `bf16`, `u8`.
    public var description: String { String(cString: mnk_dtype_name(code)) }
}
