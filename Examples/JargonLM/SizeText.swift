import Foundation

/// "512 B", "8.23 KB", "112 MB": at most three digits.
public func bytesText(_ bytes: Int) -> String {
    if bytes < 1000 { return "\(bytes) B" }
    var number = Double(bytes)
    for unit in ["KB", "MB", "GB", "TB"] {
        number /= 1000
        // A number that would round to four digits uses the next unit.
        if number < 999.5 || unit == "TB" {
            let digits = number < 9.995 ? 2 : number < 99.95 ? 1 : 0
            return String(format: "%.\(digits)f \(unit)", number)
        }
    }
    return "\(bytes) B"
}
