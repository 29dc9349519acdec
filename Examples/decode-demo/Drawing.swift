import Foundation
import MLXNativeKernels

/// Draws slots as text that fits 100 columns; colors only where the output is a terminal that wants them.
struct Drawing {
    private static let columns = 100
    private static let left = 9
    private static let right = "  dispatches   bytes read   bytes written"

    private let usesColor: Bool
    private let digits: Int
    private let slotsPerLine: Int
    private let slotsTitle: String

    /// Columns that the slots of one line take, or their title where that is longer.
    private var slotColumns: Int { max(slotsPerLine * (digits + 2), slotsTitle.count) }

    init(capacity: Int, tokens: Int) {
        usesColor = isatty(STDOUT_FILENO) == 1 && ProcessInfo.processInfo.environment["NO_COLOR"] == nil
        digits = String(max(tokens - 1, 0)).count
        slotsPerLine = min(capacity, max(1, (Self.columns - Self.left - Self.right.count) / (digits + 2)))
        slotsTitle = capacity == 1 ? "slot 0" : "slots 0 to \(capacity - 1)"
    }

    func legend(pinned: Int) -> String {
        let pinnedCell = pinned > 0 ? "   \(cell("0", .pinned)) stays for ever" : ""
        return """
              Each row is one token. A cell is a slot with the position that it holds:
              \(cell("7", .newest)) just written\(pinnedCell)   \(cell("·", .empty)) empty
            """
    }

    var header: String { "  token  " + slotsTitle.padded(to: slotColumns) + Self.right }

    func row(_ map: SlotMap, token: Int, _ counts: Summary.Counts) -> String {
        let cells = map.positions.map { position in
            guard let position else { return cell("·", .empty) }
            return cell(
                "\(position)", position == map.newest ? .newest : position < map.pinned ? .pinned : .kept)
        }
        let lines = stride(from: 0, to: cells.count, by: slotsPerLine).map {
            cells[$0..<min($0 + slotsPerLine, cells.count)].joined()
        }
        let firstColumns = min(slotsPerLine, cells.count) * (digits + 2)
        let numbers =
            "\(counts.dispatches)".aligned(to: slotColumns - firstColumns + 12) + "\(counts.bytesRead)".aligned(to: 13)
            + "\(counts.bytesWritten)".aligned(to: 16)
        let first = "\(token)".aligned(to: Self.left - 2) + "  " + lines[0] + numbers
        return ([first] + lines.dropFirst().map { String(repeating: " ", count: Self.left) + $0 })
            .joined(separator: "\n")
    }

    private enum Look { case empty, kept, pinned, newest }

    private func cell(_ text: String, _ look: Look) -> String {
        let text = text.aligned(to: digits)
        switch look {
        case .empty: return colored(" \(text) ", "2")
        case .kept: return " \(text) "
        case .pinned: return colored("(\(text))", "36")
        case .newest: return colored("[\(text)]", "1;32")
        }
    }

    private func colored(_ text: String, _ code: String) -> String {
        usesColor ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }
}

extension String {
    /// Spaces before it, up to this width.
    func aligned(to width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }
    /// Spaces after it, up to this width.
    func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
