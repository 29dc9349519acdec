import Foundation

/// Where the demo writes. Control codes go to terminals alone.
///
/// On a terminal, text streams with a status line below it. The cursor's column is counted here, so lines are broken
/// here too. A window that is too narrow for that gets the text as it is.
struct Terminal {
    private let window: Window
    private let write: Sink
    private let clock: () -> Double
    private var columns: Int
    private var column = 0
    private var statusDrawn = -Double.infinity
    /// Lines are broken here. Once they were not, the cursor's column is no longer known.
    private var isSteered: Bool

    init() { self.init(Window(of: STDOUT_FILENO), sink(.standardOutput)) }

    init(
        _ window: Window, _ write: @escaping Sink,
        clock: @escaping () -> Double = { ProcessInfo.processInfo.systemUptime }
    ) {
        self.window = window
        self.write = write
        self.clock = clock
        columns = window.columns()
        isSteered = window.isTerminal && columns >= Window.leastColumns
    }

    /// Text that goes on where the last one ended.
    mutating func stream(_ text: String) throws(OutputFailure) {
        guard isSteered else { return try write(text) }
        var shown = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            let isBreak = scalar == "\n"
            let width = decode_demo.columns(of: scalar)
            // The last column stays free: terminals differ in where the cursor is after it.
            if isBreak || (width > 0 && column + width >= columns) {
                // What is erased is the status line, which is due again at once.
                shown.append(contentsOf: "\n\u{1B}[K".unicodeScalars)
                column = 0
                statusDrawn = -.infinity
            }
            if !isBreak {
                shown.append(scalar == "\t" ? " " : scalar)
                column += width
            }
        }
        try write(String(shown))
    }

    /// Whether it is time to draw the status line again: a few times each second, and never without a terminal.
    var wantsStatus: Bool { isSteered && clock() - statusDrawn > 0.1 }

    /// Draws the status line below the text.
    mutating func status(_ text: String) throws(OutputFailure) {
        guard isSteered else { return }
        statusDrawn = clock()
        columns = window.columns()
        isSteered = columns >= Window.leastColumns
        let line = isSteered ? marked(clipped(text, to: columns - 1), "7") : ""
        try write("\n\u{1B}[K\(line)\u{1B}[1A\r" + (column > 0 ? "\u{1B}[\(column)C" : ""))
    }

    /// Ends streamed text, and its status line.
    mutating func endStream() throws(OutputFailure) {
        try write(isSteered ? "\n\u{1B}[K" : "\n")
        column = 0
    }

    func line(_ text: String = "") throws(OutputFailure) { try write(text + "\n") }

    func bold(_ text: String) -> String { marked(text, "1") }

    private func marked(_ text: String, _ code: String) -> String {
        isSteered && window.hasColor ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }
}
