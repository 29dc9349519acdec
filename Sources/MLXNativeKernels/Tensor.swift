import Foundation

#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// A part of a device's memory with an element type and a shape, elements in row-major order without gaps.
///
/// Slices and reshaped tensors share memory with the tensor they come from.
///
/// Reading waits for submitted work that writes the same bytes, and writing for work that reads or writes them, so that
/// results can be read right after ``KernelDevice/encode(label:_:)``. If that work failed, reading throws until the
/// bytes are written again. In asynchronous code ``arrayWhenFinished(of:)-(Float.Type)`` suspends instead of blocking.
/// Memory that is accessed in other ways, through a pointer passed to
/// ``wrapping(_:shape:dtype:byteOffset:on:deallocator:)`` or through a Metal buffer, is not checked: wait for submitted
/// work before using it.
///
/// ```swift
/// let keys = try Tensor(numbers, shape: [8, 128], dtype: .float16, on: device)   // numbers: [Float]
/// let out = try Tensor.zeros(shape: [8, 128], dtype: .float32, on: device)
/// let firstHeads = try keys[0..<2]                                               // [2, 128], same memory
/// let back = try firstHeads.array(of: Float.self)
/// ```
public final class Tensor: Sendable {
    let handle: Handle

    init(_ make: (ErrorOut) -> OpaquePointer?) throws(KernelError) {
        handle = try Handle(mnk_tensor_release, make)
    }

    /// A tensor filled with zeros. A shape has at most eight extents, outermost first; an empty one is one element.
    ///
    /// - Throws: ``KernelError`` for an impossible shape, or if memory runs out.
    public static func zeros(
        shape: [Int], dtype: ElementType = .float32, on device: KernelDevice
    ) throws(KernelError) -> Tensor {
        let extents = try extents(shape, op: "Tensor")
        return try Tensor { mnk_tensor_make(device.handle.pointer, dtype.code, extents, extents.count, $0) }
    }

    /// A tensor of these numbers, converted to a float type with rounding to nearest, ties to even.
    ///
    /// Without a shape it has one axis.
    ///
    /// - Throws: ``KernelError`` if shape and numbers disagree, or `dtype` is not a float type.
    public convenience init(
        _ values: [Float], shape: [Int]? = nil, dtype: ElementType = .float32, on device: KernelDevice
    ) throws(KernelError) {
        try self.init(bytes: converted(values, to: dtype), shape: shape ?? [values.count], dtype: dtype, on: device)
    }

    /// A tensor of these elements, bits unchanged. Without a shape it has one axis.
    ///
    /// - Throws: ``KernelError`` if shape and values disagree.
    public convenience init<Element: TensorElement>(
        _ values: [Element], shape: [Int]? = nil, on device: KernelDevice
    ) throws(KernelError) {
        try self.init(
            bytes: values.withUnsafeBytes { Array($0) }, shape: shape ?? [values.count], dtype: Element.elementType,
            on: device)
    }

    /// A tensor with a copy of these bytes, which must fill it exactly.
    ///
    /// - Throws: ``KernelError`` if the number of bytes does not fit the shape.
    public convenience init(
        bytes: some ContiguousBytes, shape: [Int], dtype: ElementType, on device: KernelDevice
    ) throws(KernelError) {
        let extents = try extents(shape, op: "Tensor")
        try self.init { mnk_tensor_make(device.handle.pointer, dtype.code, extents, extents.count, $0) }
        try write(bytes: bytes)
    }

    /// A tensor over memory that the caller owns, without a copy.
    ///
    /// What the caller does with the memory is not checked: using it directly does not wait for submitted work, does not
    /// report that such work failed, and does not count as writing it again.
    ///
    /// - Parameters:
    ///   - memory: Stays valid until the deallocator is called.
    ///   - shape: Extents of the tensor.
    ///   - dtype: What its elements are.
    ///   - byteOffset: Where the tensor starts in the memory.
    ///   - device: The device that uses the memory.
    ///   - deallocator: Called once, on any thread, after the last user of the memory is gone; when this call
    ///     throws, it is called before that.
    /// - Throws: ``KernelError`` if the tensor is not inside the memory, or the device cannot use it.
    public static func wrapping(
        _ memory: UnsafeMutableRawBufferPointer, shape: [Int], dtype: ElementType, byteOffset: Int = 0,
        on device: KernelDevice, deallocator: @escaping @Sendable () -> Void = {}
    ) throws(KernelError) -> Tensor {
        let context = Unmanaged.passRetained(Deallocator(deallocator)).toOpaque()
        let sizes: ([UInt64], UInt64)
        do {
            sizes = (
                try extents(shape, op: "Tensor"), try UInt64(byteOffset, "byteOffset", op: "Tensor")
            )
        } catch {
            Deallocator.run(context)
            throw error
        }
        // Empty memory may have no address; no byte of it is ever touched.
        let start = memory.baseAddress ?? UnsafeMutableRawPointer(bitPattern: 1 << 12)!
        return try Tensor {
            mnk_tensor_make_wrapping(
                device.handle.pointer, start, UInt64(memory.count), dtype.code, sizes.0, sizes.0.count, sizes.1,
                { Deallocator.run($0) }, context, $0)
        }
    }

    /// What its elements are.
    public var dtype: ElementType { ElementType(mnk_tensor_dtype(handle.pointer)) }

    /// Extents, outermost first.
    public var shape: [Int] {
        (0..<mnk_tensor_rank(handle.pointer)).map { Int(clamping: mnk_tensor_extent(handle.pointer, $0)) }
    }

    /// Number of elements.
    public var count: Int { byteCount / dtype.byteSize }

    /// Bytes of all elements.
    public var byteCount: Int { Int(clamping: mnk_tensor_byte_count(handle.pointer)) }

    /// Where it starts in the memory that it shares with others.
    public var byteOffset: Int { Int(clamping: mnk_tensor_byte_offset(handle.pointer)) }

    /// The entries of the outermost axis in this range, sharing memory.
    ///
    /// `keys[2..<5]` of a tensor `[8, 128]` is `[3, 128]`.
    ///
    /// - Throws: ``KernelError`` if the range leaves the axis, or the tensor has no axis.
    public subscript(range: Range<Int>) -> Tensor {
        get throws(KernelError) {
            let begin = try UInt64(range.lowerBound, "the start of the slice", op: "Tensor")
            return try Tensor { mnk_tensor_make_slice(handle.pointer, begin, UInt64(range.count), $0) }
        }
    }

    /// The same elements under another shape, sharing memory.
    ///
    /// - Throws: ``KernelError`` if the number of elements differs.
    public func reshaped(_ shape: [Int]) throws(KernelError) -> Tensor {
        let extents = try extents(shape, op: "Tensor")
        return try Tensor { mnk_tensor_make_reshaped(handle.pointer, extents, extents.count, $0) }
    }
}

extension Tensor: CustomStringConvertible {
    /// Element type and shape: `f16 [8, 128]`.
    public var description: String { "\(dtype) \(shape)" }
}

/// Runs a closure once, from a C callback.
private final class Deallocator: Sendable {
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    static func run(_ context: UnsafeMutableRawPointer?) {
        guard let context else { return }
        Unmanaged<Deallocator>.fromOpaque(context).takeRetainedValue().body()
    }
}
