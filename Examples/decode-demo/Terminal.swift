import Foundation

/// Where the demo writes. Control codes go to terminals alone.
///
/// On a terminal, text streams with a status line below it. The cursor's column is counted here, so lines are broken
/// here too.
struct Terminal {
    let isTerminal: Bool
    let columns: Int
    private var column = 0
    private var statusDrawn = 0.0

    init() {
        isTerminal = isatty(STDOUT_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"
        var size = winsize()
        let known = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col >= 20
        columns = known ? Int(size.ws_col) : 100
    }

    /// Text that goes on where the last one ended.
    mutating func stream(_ text: String) {
        guard isTerminal else { return write(text) }
        var shown = ""
        for character in text {
            let isBreak = character == "\n"
            if isBreak || column == columns - 1 {
                // What is erased is the status line, which is due again at once.
                shown += "\n\u{1B}[K"
                column = 0
                statusDrawn = 0
            }
            if !isBreak {
                shown.append(character == "\t" ? " " : character)
                column += 1
            }
        }
        write(shown)
    }

    /// Whether it is time to draw the status line again: a few times each second, and never without a terminal.
    var wantsStatus: Bool { isTerminal && ProcessInfo.processInfo.systemUptime - statusDrawn > 0.1 }

    /// Draws the status line below the text.
    mutating func status(_ text: String) {
        statusDrawn = ProcessInfo.processInfo.systemUptime
        let back = column > 0 ? "\r\u{1B}[\(column)C" : "\r"
        write("\n\u{1B}[K\u{1B}[7m\(text.prefix(columns - 1))\u{1B}[0m\u{1B}[1A" + back)
    }

    /// Ends streamed text, and its status line.
    mutating func endStream() {
        write(isTerminal ? "\n\u{1B}[K" : "\n")
        column = 0
    }

    func line(_ text: String = "") { write(text + "\n") }

    func bold(_ text: String) -> String { isTerminal ? "\u{1B}[1m\(text)\u{1B}[0m" : text }

    private func write(_ text: String) {
        FileHandle.standardOutput.write(Data(text.utf8))
    }
}

/// A bar on the error stream for work that takes longer than a second; nothing where that is no terminal.
struct ProgressBar {
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private let begin = ProcessInfo.processInfo.systemUptime
    private var drawn = 0.0
    private static let width = 40

    mutating func show(_ title: String, _ fraction: Double) {
        let now = ProcessInfo.processInfo.systemUptime
        guard isTerminal, now - begin > 1, now - drawn > 0.1 else { return }
        drawn = now
        let full = Int(Double(Self.width) * min(max(fraction, 0), 1))
        let bar = String(repeating: "█", count: full) + String(repeating: "░", count: Self.width - full)
        write("\r\u{1B}[K\(bar) \(Int(100 * fraction)) %  \(title)")
    }

    func end() {
        if isTerminal && drawn > 0 { write("\r\u{1B}[K") }
    }

    private func write(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}
