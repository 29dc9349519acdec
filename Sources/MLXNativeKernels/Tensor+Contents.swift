import Foundation

#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension Tensor {
    /// The elements as `Float`, converted from `float32`, `float16` or `bfloat16`.
    ///
    /// Waits for submitted work that writes them.
    ///
    /// - Throws: ``KernelError`` for a tensor of integers, if the work that was to write the elements failed, if an open
    ///   step writes them, or if waiting could never end (``KernelError/Code/wouldDeadlock``).
    public func array(of type: Float.Type) throws(KernelError) -> [Float] {
        switch dtype {
        case .float32: return try elements()
        case .float16: return try (elements() as [UInt16]).map(FloatConversion.float(float16Bits:))
        case .bfloat16: return try (elements() as [UInt16]).map(FloatConversion.float(bfloat16Bits:))
        default: throw wrongElementType(got: dtype, expected: "f32, f16 or bf16", fix: "Read it as integers.")
        }
    }

    /// The elements as they are.
    ///
    /// Waits for submitted work that writes them.
    ///
    /// - Throws: ``KernelError`` if the tensor holds another element type, if the work that was to write the elements
    ///   failed, if an open step writes them, or if waiting could never end (``KernelError/Code/wouldDeadlock``).
    public func array<Element: TensorElement>(of type: Element.Type) throws(KernelError) -> [Element] {
        try requireElementType(type)
        return try elements()
    }

    /// The elements as `Float` once submitted work that writes them is done, without blocking the calling thread.
    ///
    /// - Throws: ``KernelError`` as ``array(of:)-(Float.Type)`` does.
    public func arrayWhenFinished(of type: Float.Type) async throws(KernelError) -> [Float] {
        try await blocking { () throws(KernelError) in try self.array(of: Float.self) }
    }

    /// The elements as they are once submitted work that writes them is done, without blocking the calling thread.
    ///
    /// - Throws: ``KernelError`` as ``array(of:)-(Element.Type)`` does.
    public func arrayWhenFinished<Element: TensorElement>(of type: Element.Type) async throws(KernelError) -> [Element]
    {
        try await blocking { () throws(KernelError) in try self.array(of: Element.self) }
    }

    /// A copy of all bytes. Waits for submitted work that writes them.
    ///
    /// - Throws: ``KernelError`` if the device cannot read its memory back, if the work that was to write the bytes failed,
    ///   if an open step writes them, or if waiting could never end (``KernelError/Code/wouldDeadlock``).
    public func bytes() throws(KernelError) -> [UInt8] { try elements() }

    /// Replaces all elements by these numbers, converted to the tensor's float type. Waits for submitted work that reads
    /// or writes them.
    ///
    /// - Throws: ``KernelError`` for a tensor of integers, if the number of elements differs, if an open step uses them, or
    ///   if waiting could never end (``KernelError/Code/wouldDeadlock``).
    public func write(_ values: [Float]) throws(KernelError) {
        try write(bytes: converted(values, to: dtype))
    }

    /// Replaces all elements by these, bits unchanged. Waits for submitted work that reads or writes them.
    ///
    /// - Throws: ``KernelError`` if the tensor holds another element type or number of elements, if an open step uses them,
    ///   or if waiting could never end (``KernelError/Code/wouldDeadlock``).
    public func write<Element: TensorElement>(_ values: [Element]) throws(KernelError) {
        try requireElementType(Element.self)
        try write(bytes: values.withUnsafeBytes { Array($0) })
    }

    /// Replaces all bytes by these, which must fill the tensor exactly. Waits for submitted work that reads or writes
    /// them.
    ///
    /// - Throws: ``KernelError`` if the number of bytes differs, if an open step uses them, or if waiting could never end
    ///   (``KernelError/Code/wouldDeadlock``).
    public func write(bytes: some ContiguousBytes) throws(KernelError) {
        try calling { error in
            bytes.withUnsafeBytes { mnk_tensor_write(handle.pointer, $0.baseAddress, UInt64($0.count), error) }
        }
    }

    private func elements<Element: BitwiseCopyable>() throws(KernelError) -> [Element] {
        let count = byteCount / MemoryLayout<Element>.stride
        var failure: KernelError?
        let result = [Element](unsafeUninitializedCapacity: count) { buffer, initialized in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            do throws(KernelError) {
                try calling { mnk_tensor_read(handle.pointer, bytes.baseAddress, UInt64(bytes.count), $0) }
                initialized = count
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return result
    }

    private func requireElementType<Element: TensorElement>(_ type: Element.Type) throws(KernelError) {
        guard dtype == Element.elementType else {
            throw wrongElementType(
                got: dtype, expected: "\(Element.elementType)", fix: "Use the Swift type that has the same bits.")
        }
    }
}

/// The numbers as bytes of a float type.
func converted(_ values: [Float], to dtype: ElementType) throws(KernelError) -> [UInt8] {
    switch dtype {
    case .float32: return values.withUnsafeBytes { Array($0) }
    case .float16: return values.map(FloatConversion.float16Bits).withUnsafeBytes { Array($0) }
    case .bfloat16: return values.map(FloatConversion.bfloat16Bits).withUnsafeBytes { Array($0) }
    default:
        throw wrongElementType(
            got: dtype, expected: "f32, f16 or bf16", fix: "Pass an array of the integer type instead of Float.")
    }
}

private func wrongElementType(got: ElementType, expected: String, fix: String) -> KernelError {
    .invalid(
        op: "Tensor", what: "the element type does not fit the Swift type", got: "\(got)", expected: expected,
        fix: fix)
}
