import Foundation

/// A number with so many digits after the point.
func rounded(_ number: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", number) }

/// The same with its sign, but no sign for what rounds to zero.
func signed(_ number: Double, _ digits: Int) -> String {
    let text = String(format: "%+.\(digits)f", number)
    return Double(text) == 0 ? rounded(0, digits) : text
}

/// "12 %".
func percentage(_ part: Double, of all: Double) -> String { all > 0 ? "\(rounded(100 * part / all, 0)) %" : "" }

extension String {
    /// Spaces before it, up to this width.
    func aligned(to width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }
    var trimmingTrailingSpaces: String { String(reversed().drop { $0 == " " }.reversed()) }
    /// Spaces after it, up to this width.
    func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
