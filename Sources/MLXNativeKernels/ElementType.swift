#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension ElementType {
    /// Bytes of one element.
    public var byteSize: Int { mnk_dtype_size(code) }

    /// Whether elements are `float32`, `float16` or `bfloat16`.
    public var isFloatingPoint: Bool { self == .float32 || self == .float16 || self == .bfloat16 }
}

extension ElementType: CustomStringConvertible {
    /// The short name that messages use: `f32`, `bf16`, `u8`.
    public var description: String { String(cString: mnk_dtype_name(code)) }
}
