import XCTest

@testable import decode_demo

/// The visible output, on a screen that interprets control codes.
final class TerminalTests: XCTestCase {
    private let status = "12 tokens/s · position 7 of 1024"

    /// Streams a text character by character, with a status line after each.
    private func stream(
        _ text: String, to terminal: inout Terminal, on screen: Screen, file: StaticString = #filePath,
        line: UInt = #line
    ) throws {
        for scalar in text.unicodeScalars {
            try terminal.stream(String(scalar))
            try terminal.status(status)
            XCTAssertEqual(screen.reversedRows, [screen.row + 1], "after \(scalar)", file: file, line: line)
            XCTAssertEqual(
                screen.lines[screen.row + 1], String(status.prefix(screen.columns - 1)), file: file, line: line)
        }
    }

    func testTextWrapsAboveTheStatusLine() throws {
        let screen = Screen(columns: 20)
        var terminal = Terminal(screen.window(), screen.write)
        let letters = (0..<45).map { String(UnicodeScalar(UInt8(ascii: "a") + UInt8($0 % 26))) }.joined()
        try stream(letters + "\n\nend", to: &terminal, on: screen)
        XCTAssertEqual(screen.column, 3)
        try terminal.endStream()
        XCTAssertEqual(screen.lines, ["abcdefghijklmnopqrs", "tuvwxyzabcdefghijkl", "mnopqrs", "", "end", ""])
        XCTAssertEqual(screen.reversedRows, [])
        XCTAssertEqual([screen.row, screen.column], [5, 0])
    }

    func testALineAfterTheStreamReplacesTheStatus() throws {
        let screen = Screen(columns: 40)
        var terminal = Terminal(screen.window(), screen.write)
        try terminal.line("before")
        try stream("a\tb", to: &terminal, on: screen)
        try terminal.endStream()
        try terminal.line(terminal.bold("after"))
        XCTAssertEqual(screen.lines, ["before", "a b", "after", ""])
        XCTAssert(screen.sent.contains("\u{1B}[1mafter\u{1B}[0m"))
    }

    func testALineBreakRedrawsTheStatus() throws {
        let screen = Screen(columns: 40)
        var time = 5.0
        var terminal = Terminal(screen.window(), screen.write) { time }
        XCTAssert(terminal.wantsStatus)
        try stream("a", to: &terminal, on: screen)
        XCTAssertFalse(terminal.wantsStatus)
        time += 0.2
        XCTAssert(terminal.wantsStatus)
        try terminal.status(status)
        try terminal.stream("\n")
        XCTAssertEqual(screen.lines, ["a", ""])
        XCTAssert(terminal.wantsStatus)
    }

    func testWideAndCombiningCharacters() throws {
        let screen = Screen(columns: 20)
        var terminal = Terminal(screen.window(), screen.write)
        // Nine wide characters take 18 of 19 columns; the tenth does not fit. A combining mark takes none, even at the
        // end.
        try stream("漢字漢字漢字漢字漢字", to: &terminal, on: screen)
        XCTAssertEqual(screen.column, 2)
        try stream("\n" + String(repeating: "x", count: 18) + "e\u{301}😀", to: &terminal, on: screen)
        XCTAssertEqual(screen.column, 2)
        try terminal.endStream()
        XCTAssertEqual(
            screen.lines, ["漢字漢字漢字漢字漢", "字", String(repeating: "x", count: 18) + "e\u{301}", "😀", ""])
        XCTAssertEqual(
            ["a", "é", "漢", "😀", "\u{301}", "\u{FFFD}", "\u{378}"].map(columns(of:)), [1, 1, 2, 2, 0, 1, 1])
        XCTAssertEqual(
            [0, 1, 2, 3, 4, 9].map { clipped("a漢e\u{301}", to: $0) },
            ["", "a", "a", "a漢", "a漢e\u{301}", "a漢e\u{301}"])
    }

    func testNarrowWindowsAndFilesGetPlainText() throws {
        for (columns, isTerminal) in [(19, true), (20, false)] {
            let screen = Screen(columns: columns)
            var terminal = Terminal(screen.window(isTerminal: isTerminal), screen.write)
            try terminal.stream("one\ttwo three four five\n漢")
            XCTAssertFalse(terminal.wantsStatus)
            try terminal.status(status)
            try terminal.endStream()
            try terminal.line(terminal.bold("end"))
            XCTAssertEqual(screen.sent, "one\ttwo three four five\n漢\nend\n")
        }
    }

    func testAWindowThatBecomesNarrow() throws {
        let screen = Screen(columns: 60)
        var terminal = Terminal(screen.window(), screen.write)
        try stream("some text", to: &terminal, on: screen)
        screen.columns = 30
        try stream(String(repeating: "y", count: 25), to: &terminal, on: screen)
        XCTAssertEqual(screen.lines[0], "some text" + String(repeating: "y", count: 20))
        screen.columns = 19
        try terminal.status(status)
        XCTAssertEqual(screen.reversedRows, [])
        XCTAssertEqual(screen.column, 5)
        XCTAssertFalse(terminal.wantsStatus)
        let before = screen.sent
        try terminal.stream("\tplain\n")
        // The cursor position is unknown in a window that is wide again.
        screen.columns = 60
        try terminal.status(status)
        try terminal.endStream()
        XCTAssertEqual(screen.sent, before + "\tplain\n\n")
    }

    func testWithoutColorNothingIsHighlighted() throws {
        let screen = Screen(columns: 40)
        var terminal = Terminal(screen.window(hasColor: false), screen.write)
        try terminal.stream("text")
        try terminal.status(status)
        XCTAssertEqual(screen.lines, ["text", status])
        XCTAssertEqual(terminal.bold("a"), "a")
        XCTAssertFalse(screen.sent.contains { $0 == "m" }, "no control code ends with an m, and no text has one")
    }

    func testDetectsTerminals() {
        func window(_ environment: [String: String], isDevice: Bool = true) -> Window {
            Window(descriptor: -1, isDevice: isDevice, environment: environment)
        }
        XCTAssert(window(["TERM": "xterm"]).isTerminal)
        XCTAssert(window(["TERM": "xterm", "NO_COLOR": ""]).hasColor)
        XCTAssertFalse(window(["TERM": "xterm", "NO_COLOR": "1"]).hasColor)
        XCTAssertFalse(window(["TERM": "xterm"], isDevice: false).isTerminal)
        for environment in [[:], ["TERM": ""], ["TERM": "dumb"]] {
            XCTAssertFalse(window(environment).isTerminal, "\(environment)")
            XCTAssertFalse(window(environment).hasColor, "\(environment)")
        }
        XCTAssertEqual(window([:]).columns(), 80, "a window that does not tell its size")
    }

    func testTheProgressBarFits() {
        for columns in [20, 21, 47, 60, 200] {
            let screen = Screen(columns: columns)
            var time = 0.0
            var bar = ProgressBar(screen.window(), screen.write) { time }
            bar.show("reading", 0.1)
            XCTAssertEqual(screen.sent, "", "short work has no bar")
            for fraction in [0.25, 0.5, 7] {
                time += 1.5
                bar.show("reading with 漢字漢字漢字", fraction)
            }
            let line = String(repeating: "█", count: 40) + " 100 %  reading with 漢字漢字漢字"
            XCTAssertEqual(screen.lines, [clipped(line, to: columns - 1)])
            XCTAssertLessThan(screen.column, columns)
            bar.end()
            XCTAssertEqual(screen.lines, [""])
            XCTAssertEqual(screen.column, 0)
        }
    }

    func testNoProgressBarWithoutATerminal() {
        for (columns, isTerminal) in [(19, true), (80, false)] {
            let screen = Screen(columns: columns)
            var time = 0.0
            var bar = ProgressBar(screen.window(isTerminal: isTerminal), screen.write) { time }
            time = 9
            bar.show("reading", 0.5)
            bar.end()
            XCTAssertEqual(screen.sent, "")
        }
    }
}
