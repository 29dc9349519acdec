/// Conversions between `Float` and the 16-bit float types, rounding to nearest, ties to even.
///
/// By hand on bits, because Swift has no bfloat16, and no `Float16` on Intel Macs.
enum FloatConversion {
    static func float16Bits(_ value: Float) -> UInt16 {
        let bits = value.bitPattern
        let sign = UInt16(truncatingIfNeeded: bits >> 16) & 0x8000
        let magnitude = bits & 0x7FFF_FFFF
        if magnitude > 0x7F80_0000 {
            // The quiet bit keeps a payload that lies in the lost bits from turning into infinity.
            return sign | 0x7E00 | UInt16(truncatingIfNeeded: magnitude >> 13) & 0x03FF
        }
        if magnitude >= 0x4780_0000 { return sign | 0x7C00 }
        if magnitude >= 0x3880_0000 {
            // A carry out of the significand goes on into the exponent, up to infinity, as it should.
            return sign | UInt16(truncatingIfNeeded: roundedShift(magnitude - (112 << 23), by: 13))
        }
        // Subnormal: shift the significand with its hidden bit to the weight 2^-24.
        let shift = 126 - magnitude >> 23
        if shift > 24 { return sign }
        return sign | UInt16(truncatingIfNeeded: roundedShift(magnitude & 0x007F_FFFF | 0x0080_0000, by: shift))
    }

    static func float(float16Bits bits: UInt16) -> Float {
        let sign = UInt32(bits & 0x8000) << 16
        let exponent = UInt32(bits >> 10) & 0x1F
        let significand = UInt32(bits) & 0x03FF
        switch exponent {
        case 0x1F: return Float(bitPattern: sign | 0x7F80_0000 | significand << 13)
        case 0: return Float(sign: sign == 0 ? .plus : .minus, exponent: -24, significand: Float(significand))
        default: return Float(bitPattern: sign | (exponent + 112) << 23 | significand << 13)
        }
    }

    static func bfloat16Bits(_ value: Float) -> UInt16 {
        let bits = value.bitPattern
        if value.isNaN { return UInt16(truncatingIfNeeded: bits >> 16) | 0x0040 }
        return UInt16(truncatingIfNeeded: roundedShift(bits, by: 16))
    }

    static func float(bfloat16Bits bits: UInt16) -> Float { Float(bitPattern: UInt32(bits) << 16) }

    private static func roundedShift(_ value: UInt32, by shift: UInt32) -> UInt32 {
        let kept = value >> shift
        let lost = value & ((1 << shift) - 1)
        let half = UInt32(1) << (shift - 1)
        return lost > half || (lost == half && kept & 1 == 1) ? kept + 1 : kept
    }
}
