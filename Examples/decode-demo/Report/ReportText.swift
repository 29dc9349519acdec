import Foundation

/// Escapes text for elements and quoted attributes of a page.
///
/// Control codes become their symbols, and characters that could reorder or hide others become a replacement character.
func escaped(_ text: String) -> String {
    var result = ""
    result.reserveCapacity(text.utf8.count)
    for scalar in text.unicodeScalars {
        switch scalar {
        case "&": result += "&amp;"
        case "<": result += "&lt;"
        case ">": result += "&gt;"
        case "\"": result += "&quot;"
        case "'": result += "&#39;"
        default: result.unicodeScalars.append(shown(scalar))
        }
    }
    return result
}

private func shown(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
    // Emoji and several scripts need these two joiners.
    if scalar == "\n" || scalar == "\t" || scalar == "\u{200C}" || scalar == "\u{200D}" { return scalar }
    if scalar.value < 0x20 { return Unicode.Scalar(0x2400 + scalar.value) ?? "\u{FFFD}" }
    if scalar.value == 0x7F { return "\u{2421}" }
    if scalar.properties.isNoncharacterCodePoint { return "\u{FFFD}" }
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: return "\u{FFFD}"
    default: return scalar
    }
}

/// One visible character for a token, not yet escaped.
func label(ofToken token: String) -> String {
    guard let first = token.unicodeScalars.first else { return "∅" }
    switch first {
    case "\n": return "⏎"
    case "\t": return "⇥"
    case " ": return "·"
    default: return String(shown(first))
    }
}

/// Shown for a value that is NaN or infinite.
let noNumber = "–"

/// A number with `digits` decimal places: "2.149".
func decimalText(_ value: Double, digits: Int) -> String {
    guard value.isFinite, abs(value) < 1e15 else { return noNumber }
    let text = String(format: "%.\(digits)f", abs(value))
    let isZero = !text.contains { $0 != "0" && $0 != "." }
    return (value < 0 && !isZero ? "−" : "") + text
}

/// Two significant digits, and an exponent only if necessary: "0.0064", "32", "3.0e−9".
func shortText(_ value: Double) -> String {
    guard value.isFinite else { return noNumber }
    let size = abs(value)
    if size == 0 { return "0" }
    if size < 1e-6 || size >= 1e7 {
        return String(format: "%.1e", value).replacingOccurrences(of: "e-0", with: "e-")
            .replacingOccurrences(of: "e+0", with: "e").replacingOccurrences(of: "e+", with: "e")
            .replacingOccurrences(of: "-", with: "−")
    }
    return decimalText(value, digits: max(0, 1 - Int(floor(log10(size)))))
}

/// A difference, always with its sign: "+0.0064", "−0.00010", "0".
func signedText(_ value: Double) -> String { (value > 0 && value.isFinite ? "+" : "") + shortText(value) }

/// "1 K" for 1024; other numbers are unchanged.
func contextText(_ tokens: Int) -> String {
    tokens > 0 && tokens % 1024 == 0 ? "\(tokens / 1024) K" : "\(tokens)"
}

/// "4,096": digits in groups of three.
func groupedText(_ number: Int) -> String {
    let digits = String(number.magnitude)
    var result = ""
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index).isMultiple(of: 3) { result += "," }
        result.append(digit)
    }
    return (number < 0 ? "−" : "") + result
}

/// A readable unit for the largest of some numbers.
struct ReadableUnit {
    let name: String
    private let size: Double

    /// Seconds or fractions of a second.
    static func time(upTo largest: Double) -> ReadableUnit {
        largest >= 1 ? ReadableUnit("s", 1) : largest >= 1e-3 ? ReadableUnit("ms", 1e-3) : ReadableUnit("µs", 1e-6)
    }

    /// Kilobytes or larger units.
    static func memory(upTo largest: Int) -> ReadableUnit {
        largest >= 1_000_000_000
            ? ReadableUnit("GB", 1e9) : largest >= 1_000_000 ? ReadableUnit("MB", 1e6) : ReadableUnit("KB", 1e3)
    }

    private init(_ name: String, _ size: Double) {
        self.name = name
        self.size = size
    }

    func value(_ amount: Double) -> Double { amount / size }

    /// The number without its unit, with about three significant digits: "1.84".
    func number(_ amount: Double) -> String {
        let value = value(amount)
        return decimalText(value, digits: value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2)
    }

    func text(_ amount: Double) -> String { "\(number(amount)) \(name)" }
}
