/// A Swift type whose bits are those of one ``ElementType``.
///
/// `[UInt32]` becomes a `u32` tensor, and `array(of: UInt32.self)` reads one back:
///
/// ```swift
/// let positions = try Tensor([4, 9, 0] as [UInt32], on: device)
/// let again = try positions.array(of: UInt32.self)
/// ```
public protocol TensorElement: BitwiseCopyable, Sendable {
    /// The element type with the same bits.
    static var elementType: ElementType { get }
}

extension Float: TensorElement {
    public static var elementType: ElementType { .float32 }
}
extension UInt8: TensorElement {
    public static var elementType: ElementType { .uint8 }
}
extension UInt16: TensorElement {
    public static var elementType: ElementType { .uint16 }
}
extension UInt32: TensorElement {
    public static var elementType: ElementType { .uint32 }
}
extension Int32: TensorElement {
    public static var elementType: ElementType { .int32 }
}
#if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
    extension Float16: TensorElement {
        public static var elementType: ElementType { .float16 }
    }
#endif
