import Foundation

/// "1 token", "2 tokens", "3 dispatches".
func counted(_ count: Int, _ noun: String) -> String {
    count == 1 ? "1 \(noun)" : "\(count) \(noun)\(noun.hasSuffix("h") ? "es" : "s")"
}

/// "512 bytes", "8.2 KB", "1.1 MB".
func bytesText(_ bytes: Int) -> String {
    if bytes < 1000 { return counted(bytes, "byte") }
    let thousands = Double(bytes) / 1000
    return thousands < 1000
        ? String(format: "%.1f KB", thousands) : String(format: "%.1f MB", thousands / 1000)
}

/// "0.41 ms".
func millisecondsText(_ seconds: Double) -> String { String(format: "%.2f ms", seconds * 1000) }

/// "0 to 1 and 10 to 19".
func rangesText(_ sorted: [Int]) -> String {
    var ranges: [ClosedRange<Int>] = []
    for number in sorted {
        if let last = ranges.last, last.upperBound + 1 == number {
            ranges[ranges.count - 1] = last.lowerBound...number
        } else {
            ranges.append(number...number)
        }
    }
    return ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound) to \($0.upperBound)" }
        .joined(separator: " and ")
}
