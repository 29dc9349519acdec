import MLXNativeKernels
import XCTest

/// Conversions of `Tensor` between `Float` and the 16-bit float types, over all 16-bit patterns.
final class FloatConversionTests: DeviceTestCase {
    private let allPatterns = (0...UInt16.max).map { $0 }

    private func bits(_ values: [Float], _ dtype: ElementType) throws -> [UInt16] {
        try Tensor(values, dtype: dtype, on: device).bytes().withUnsafeBytes { Array($0.bindMemory(to: UInt16.self)) }
    }

    private func floats(_ bits: [UInt16], _ dtype: ElementType) throws -> [Float] {
        let bytes = bits.withUnsafeBytes { Array($0) }
        return try Tensor(bytes: bytes, shape: [bits.count], dtype: dtype, on: device).array(of: Float.self)
    }

    /// The value of the bits in double precision, by the definition of the format.
    private func meaning(_ bits: UInt16, significandBits: Int, bias: Int) -> Double {
        let exponentMask = 0x7FFF >> significandBits
        let exponent = Int(bits >> significandBits) & exponentMask
        let fraction = Double(bits & ((1 << significandBits) - 1)) / Double(1 << significandBits)
        let sign: Double = bits & 0x8000 == 0 ? 1 : -1
        if exponent == exponentMask { return fraction == 0 ? sign * .infinity : .nan }
        if exponent == 0 { return sign * Double(sign: .plus, exponent: 1 - bias, significand: fraction) }
        return sign * Double(sign: .plus, exponent: exponent - bias, significand: 1 + fraction)
    }

    private func checkFormat(_ dtype: ElementType, significandBits: Int, bias: Int) throws {
        let values = try floats(allPatterns, dtype)
        for (pattern, value) in zip(allPatterns, values) {
            let expected = meaning(pattern, significandBits: significandBits, bias: bias)
            if expected.isNaN {
                XCTAssert(value.isNaN, "\(dtype) pattern \(pattern) is \(value), expected NaN")
            } else if Double(value) != expected || (value.sign == .minus) != (pattern & 0x8000 != 0) {
                return XCTFail("\(dtype) pattern \(pattern) is \(value), expected \(expected)")
            }
        }

        let numbers = zip(allPatterns, values).filter { !$0.1.isNaN }
        assertSame(try bits(numbers.map(\.1), dtype), numbers.map(\.0), "\(dtype) patterns there and back")

        // Between two neighbors, the middle rounds to the even one, and the smallest step away from it decides
        // otherwise. The neighbor of the largest number is infinity, which takes the place of the next power of two.
        let infinity = UInt16(0x7FFF >> significandBits) << significandBits
        var inputs: [Float] = []
        var expected: [UInt16] = []
        for low in 0..<infinity {
            let lowValue = meaning(low, significandBits: significandBits, bias: bias)
            let highValue =
                low + 1 == infinity
                ? Double(sign: .plus, exponent: bias + 1, significand: 1)
                : meaning(low + 1, significandBits: significandBits, bias: bias)
            let middle = Float((lowValue + highValue) / 2)
            guard Double(middle) == (lowValue + highValue) / 2 else { continue }
            inputs += [middle, middle.nextUp, middle.nextDown, -middle]
            expected += [low + low % 2, low + 1, low, (low + low % 2) | 0x8000]
        }
        XCTAssertGreaterThan(inputs.count, 4 * 30000)
        assertSame(try bits(inputs, dtype), expected, "\(dtype) around ties")
    }

    func testFloat16ConvertsEveryPatternAndEveryTie() throws {
        try checkFormat(.float16, significandBits: 10, bias: 15)
    }

    func testBFloat16ConvertsEveryPatternAndEveryTie() throws {
        try checkFormat(.bfloat16, significandBits: 7, bias: 127)
    }

    func testSpecialNumbersStaySpecial() throws {
        let payloadInTheLostBits = Float(bitPattern: 0x7F80_0001)
        for dtype in [ElementType.float16, .bfloat16] {
            let back = try Tensor(
                [.infinity, -.infinity, .nan, payloadInTheLostBits, -0.0, .leastNonzeroMagnitude], dtype: dtype,
                on: device
            ).array(of: Float.self)
            XCTAssertEqual(back[0], .infinity)
            XCTAssertEqual(back[1], -.infinity)
            XCTAssert(back[2].isNaN && back[3].isNaN, "\(dtype)")
            XCTAssertEqual(back[4].sign, .minus)
            XCTAssertEqual(back[5], 0)
        }
        XCTAssertEqual(try bits([.greatestFiniteMagnitude, 65519, 65520], .float16), [0x7C00, 0x7BFF, 0x7C00])
        XCTAssertEqual(try bits([.greatestFiniteMagnitude], .bfloat16), [0x7F80])
    }
}
