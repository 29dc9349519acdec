/// Swift counts with `Int`, the C API with unsigned or shorter numbers.
extension FixedWidthInteger {
    /// The number in this type, or an error that names it, and what it is of.
    init(_ value: Int, _ name: String, of owner: String = "", op: String) throws(KernelError) {
        guard let converted = Self(exactly: value) else {
            throw .invalid(
                op: op, what: "\(name)\(owner.isEmpty ? "" : " of \(owner)") is out of range", got: "\(value)",
                expected: value < Self.min ? "at least \(Self.min)" : "at most \(Self.max)",
                fix: "Pass a number in that range.")
        }
        self = converted
    }
}

/// The number, which C would take for another one if it were 0, or an error that names it.
func nonzero<Number: Numeric>(
    _ value: Number, _ name: String, of owner: String = "", op: String
) throws(KernelError) -> Number {
    guard value != 0 else {
        throw .invalid(
            op: op, what: "\(name)\(owner.isEmpty ? "" : " of \(owner)") is 0", got: "0", expected: "another number",
            fix: "Pass the number that is meant, or leave \(name) at its default.")
    }
    return value
}

extension UInt64 {
    /// The number of a sequence in the type of the C API; `nil` is its `MNK_ONLY_SEQUENCE`.
    init(sequence: Int?, op: String) throws(KernelError) {
        try self.init(sequence ?? Int(UInt32.max), "sequence", op: op)
    }
}

/// Extents in the type of the C API.
func extents(_ shape: [Int], op: String) throws(KernelError) -> [UInt64] {
    var result: [UInt64] = []
    for (axis, extent) in shape.enumerated() {
        result.append(try UInt64(extent, "the extent of axis \(axis)", op: op))
    }
    return result
}

/// All numbers in a type of the C API, or an error that names the first that does not fit.
func numbers<Number: FixedWidthInteger>(
    _ values: [Int], as type: Number.Type = Number.self, _ name: String, op: String
) throws(KernelError) -> [Number] {
    var result: [Number] = []
    for value in values { result.append(try Number(value, name, op: op)) }
    return result
}
