#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// A tensor at a kernel's buffer index, with what the kernel does to it.
///
/// The access decides where barriers go, so it must be true: `.read(x, at: 0)`, `.write(y, at: 1)`.
public struct KernelBuffer: Sendable {
    let tensor: Tensor
    let index: Int
    let access: mnk_access

    /// A tensor that the kernel only reads.
    public static func read(_ tensor: Tensor, at index: Int) -> KernelBuffer {
        KernelBuffer(tensor: tensor, index: index, access: .MNK_READ)
    }
    /// A tensor that the kernel overwrites. A Host device that checks fills it with NaN first; a kernel that keeps some of
    /// its elements takes ``readWrite(_:at:)``.
    public static func write(_ tensor: Tensor, at index: Int) -> KernelBuffer {
        KernelBuffer(tensor: tensor, index: index, access: .MNK_WRITE)
    }
    /// A tensor that the kernel reads and writes.
    public static func readWrite(_ tensor: Tensor, at index: Int) -> KernelBuffer {
        KernelBuffer(tensor: tensor, index: index, access: .MNK_READ_WRITE)
    }
}

/// Bytes that are sent with a dispatch, for a `constant` argument: `.value(Float(0.5), at: 2)`.
public struct InlineBytes: Sendable {
    let bytes: [UInt8]
    let index: Int
    let isValue: Bool

    /// A number or a struct of the size and layout of the kernel's parameter.
    ///
    /// Name the type of a literal, as in `Float(0.5)` and `Int32(2)`: Swift takes 0.5 as a `Double` and 2 as an `Int`,
    /// which have 8 bytes. A value of another size than the parameter is refused.
    public static func value<Value: BitwiseCopyable>(_ value: Value, at index: Int) -> InlineBytes {
        let padding = MemoryLayout<Value>.stride - MemoryLayout<Value>.size  // Metal counts it as part of a struct
        let bytes = withUnsafeBytes(of: value) { Array($0) } + [UInt8](repeating: 0, count: padding)
        return InlineBytes(bytes: bytes, index: index, isValue: true)
    }
    /// These bytes, at least those of the kernel's parameter: more are for a parameter that points to several values.
    public static func bytes(_ bytes: [UInt8], at index: Int) -> InlineBytes {
        InlineBytes(bytes: bytes, index: index, isValue: false)
    }
}

/// Threadgroup memory for a kernel's argument: `.byteCount(1024, at: 0)`.
public struct ThreadgroupMemory: Sendable, Hashable {
    let byteCount: Int
    let index: Int

    /// This many bytes for each threadgroup.
    public static func byteCount(_ byteCount: Int, at index: Int) -> ThreadgroupMemory {
        ThreadgroupMemory(byteCount: byteCount, index: index)
    }
}

/// A value that is fixed when a kernel is prepared: `.bool(true, at: 0)`, `.uint32(8, at: 1)`.
public struct FunctionConstant: Sendable, Hashable {
    let type: mnk_constant_type
    let bits: UInt32
    let index: Int

    private init(_ type: mnk_constant_type, _ bits: UInt32, _ index: Int) {
        self.type = type
        self.bits = bits
        self.index = index
    }

    /// A `bool` of the kernel.
    public static func bool(_ value: Bool, at index: Int) -> FunctionConstant {
        FunctionConstant(.MNK_CONSTANT_BOOL, value ? 1 : 0, index)
    }
    /// An `int` of the kernel.
    public static func int32(_ value: Int32, at index: Int) -> FunctionConstant {
        FunctionConstant(.MNK_CONSTANT_I32, UInt32(bitPattern: value), index)
    }
    /// A `uint` of the kernel.
    public static func uint32(_ value: UInt32, at index: Int) -> FunctionConstant {
        FunctionConstant(.MNK_CONSTANT_U32, value, index)
    }
    /// A `float` of the kernel.
    public static func float(_ value: Float, at index: Int) -> FunctionConstant {
        FunctionConstant(.MNK_CONSTANT_F32, value.bitPattern, index)
    }
}
