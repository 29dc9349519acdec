/// Swift counts with `Int`, the C door with unsigned or shorter numbers.
extension FixedWidthInteger {
    /// The number in this type, or an error that names it.
    init(_ value: Int, _ name: String, op: String) throws(KernelError) {
        guard let converted = Self(exactly: value) else {
            throw .invalid(
                op: op, what: "\(name) is out of range", got: "\(value)", expected: "\(Self.min) to \(Self.max)",
                fix: "Pass a number in that range.")
        }
        self = converted
    }
}

/// Extents in the type of the C door.
func extents(_ shape: [Int], op: String) throws(KernelError) -> [UInt64] {
    var result: [UInt64] = []
    for (axis, extent) in shape.enumerated() {
        result.append(try UInt64(extent, "the extent of axis \(axis)", op: op))
    }
    return result
}
