// swift-format-ignore-file: TypeNamesShouldBeCapitalized, AlwaysUseLowerCamelCase

// A stub of Apple's module with the one function that Examples/JargonLM uses. Type-checked only.
public typealias vDSP_Length = UInt
public typealias vDSP_Stride = Int

/// C = A * B, where A is M by P, B is P by N and C is M by N, in row-major order.
public func vDSP_mmul(
    _ a: UnsafePointer<Float>, _ strideA: vDSP_Stride, _ b: UnsafePointer<Float>, _ strideB: vDSP_Stride,
    _ c: UnsafeMutablePointer<Float>, _ strideC: vDSP_Stride, _ m: vDSP_Length, _ n: vDSP_Length, _ p: vDSP_Length
) {}
