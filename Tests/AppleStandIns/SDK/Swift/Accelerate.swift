// swift-format-ignore-file: TypeNamesShouldBeCapitalized, AlwaysUseLowerCamelCase

// Stands for Apple's module, with the one function of it that Examples/JargonLM uses. It is type-checked against, and
// never run.
public typealias vDSP_Length = UInt
public typealias vDSP_Stride = Int

/// C = A * B, where A is M by P, B is P by N and C is M by N, row by row.
public func vDSP_mmul(
    _ a: UnsafePointer<Float>, _ strideA: vDSP_Stride, _ b: UnsafePointer<Float>, _ strideB: vDSP_Stride,
    _ c: UnsafeMutablePointer<Float>, _ strideC: vDSP_Stride, _ m: vDSP_Length, _ n: vDSP_Length, _ p: vDSP_Length
) {}
