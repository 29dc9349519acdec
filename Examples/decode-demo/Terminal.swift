import Foundation

/// The demo's output. Only terminals get control codes.
///
/// On a terminal, text streams with a status line below it. This type tracks the cursor's column, so it also breaks
/// lines. A window that is too narrow for this gets plain text.
struct Terminal {
    private let window: Window
    private let write: Sink
    private let clock: () -> Double
    private var columns: Int
    private var column = 0
    private var statusDrawn = -Double.infinity
    /// Whether this type breaks lines. Once it does not, the cursor's column is unknown.
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

    /// Continues the streamed text.
    mutating func stream(_ text: String) throws(OutputFailure) {
        guard isSteered else { return try write(text) }
        var shown = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            let isBreak = scalar == "\n"
            let width = decode_demo.columns(of: scalar)
            // The last column stays empty: terminals place the cursor differently after it.
            if isBreak || (width > 0 && column + width >= columns) {
                // This erases the status line, which must be drawn again at once.
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

    /// Whether to draw the status line again: a few times per second, and only on a terminal.
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

    /// Ends streamed text, and clears its status line.
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
