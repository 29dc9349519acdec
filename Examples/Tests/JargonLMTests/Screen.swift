import XCTest

@testable import decode_demo

/// A small terminal: its screen after receiving texts and control codes.
final class Screen {
    struct Cell {
        var text: String
        var isReversed: Bool
    }

    /// Everything that was sent.
    private(set) var sent = ""
    private(set) var row = 0
    private(set) var column = 0
    var columns: Int
    private var rows: [[Cell]] = [[]]
    private var isReversed = false

    init(columns: Int) { self.columns = columns }

    func window(isTerminal: Bool = true, hasColor: Bool = true) -> Window {
        Window(isTerminal: isTerminal, hasColor: hasColor) { self.columns }
    }

    /// Each line without trailing spaces.
    var lines: [String] { rows.map { $0.map(\.text).joined().trimmingTrailingSpaces } }
    /// Each line with a reversed character.
    var reversedRows: [Int] { rows.indices.filter { rows[$0].contains(where: \.isReversed) } }

    func write(_ text: String) {
        sent += text
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\n": move(toRow: row + 1, column: 0)
            case "\r": column = 0
            case "\u{1B}": obey(&rest)
            default: put(scalar)
            }
        }
    }

    /// The columns of the few characters that tests write.
    private func width(_ scalar: Unicode.Scalar) -> Int {
        switch scalar.value {
        case 0x0300...0x036F: 0
        case 0x4E00...0x9FFF, 0x1F600...0x1F64F: 2
        default: 1
        }
    }

    private func put(_ scalar: Unicode.Scalar) {
        let width = width(scalar)
        if column + width > columns { move(toRow: row + 1, column: 0) }
        while rows[row].count < column { rows[row].append(Cell(text: " ", isReversed: false)) }
        if width == 0 {
            guard column > 0 else { return XCTFail("a mark at the beginning of a line") }
            rows[row][column - 1].text.unicodeScalars.append(scalar)
            return
        }
        // The second half of a wide character is a cell without text.
        let cells = [String(scalar), ""].prefix(width).map { Cell(text: $0, isReversed: isReversed) }
        rows[row].replaceSubrange(column..<min(column + width, rows[row].count), with: cells)
        column += width
    }

    private func move(toRow row: Int, column: Int) {
        self.row = row
        self.column = column
        while rows.count <= row { rows.append([]) }
    }

    private func obey(_ rest: inout Substring.UnicodeScalarView) {
        XCTAssertEqual(rest.popFirst(), "[")
        var number = ""
        while let digit = rest.first, digit.properties.numericType == .decimal {
            number.unicodeScalars.append(digit)
            rest.removeFirst()
        }
        switch (rest.popFirst(), number) {
        case ("K", ""): rows[row].removeSubrange(min(column, rows[row].count)...)
        case ("A", _): row -= Int(number) ?? 1
        case ("C", _): column = min(column + (Int(number) ?? 1), columns - 1)
        case ("m", "7"): isReversed = true
        case ("m", "0"): isReversed = false
        case ("m", "1"): break
        case (let code, _): XCTFail("the screen does not know this code: \(number)\(code.map(String.init) ?? "")")
        }
    }
}
