/// A signed difference with `digits` decimal places; a difference that rounds to zero has no sign.
func signed(_ number: Double, digits: Int) -> String {
    let text = decimalText(number, digits: digits)
    return number > 0 && text != decimalText(0, digits: digits) ? "+" + text : text
}

/// "12 %".
func percentage(_ part: Double, of all: Double) -> String {
    all > 0 ? "\(decimalText(100 * part / all, digits: 0)) %" : ""
}

extension String {
    /// Pads with spaces on the left to this width.
    func aligned(to width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }
    var trimmingTrailingSpaces: String { String(reversed().drop { $0 == " " }.reversed()) }
    /// Pads with spaces on the right to this width.
    func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
