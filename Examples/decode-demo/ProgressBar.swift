import Foundation

/// A progress bar on standard error for work that takes longer than a second; only on a terminal.
struct ProgressBar {
    private let window: Window
    private let write: Sink
    private let clock: () -> Double
    private let begin: Double
    private var drawn: Double?
    private static let width = 40

    init() { self.init(Window(of: STDERR_FILENO), sink(.standardError)) }

    init(
        _ window: Window, _ write: @escaping Sink,
        clock: @escaping () -> Double = { ProcessInfo.processInfo.systemUptime }
    ) {
        self.window = window
        self.write = write
        self.clock = clock
        begin = clock()
    }

    mutating func show(_ title: String, _ fraction: Double) {
        let now = clock()
        guard window.isTerminal, now - begin > 1, now - (drawn ?? begin) > 0.1 else { return }
        let columns = window.columns()
        guard columns >= Window.leastColumns else { return }
        drawn = now
        let part = min(max(fraction, 0), 1)
        let full = Int(Double(Self.width) * part)
        let bar = String(repeating: "█", count: full) + String(repeating: "░", count: Self.width - full)
        draw(clipped("\(bar) \(Int(100 * part)) %  \(title)", to: columns - 1))
    }

    func end() {
        if drawn != nil { draw("") }
    }

    /// Ignores errors: a missing bar is harmless.
    private func draw(_ line: String) { try? write("\r\u{1B}[K\(line)") }
}
