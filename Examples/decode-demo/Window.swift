import Foundation

/// What a stream is shown in.
struct Window {
    /// Below these, lines are left to the terminal and nothing is drawn beside the text.
    static let leastColumns = 20
    /// Where a terminal does not tell its own.
    private static let usualColumns = 80

    /// Whether control codes are understood.
    let isTerminal: Bool
    /// Whether text may be bold or reversed.
    let hasColor: Bool
    /// As they are now: people resize windows.
    let columns: () -> Int

    init(isTerminal: Bool, hasColor: Bool = true, columns: @escaping () -> Int) {
        self.isTerminal = isTerminal
        self.hasColor = isTerminal && hasColor
        self.columns = columns
    }

    init(of descriptor: Int32) {
        self.init(
            descriptor: descriptor, isDevice: isatty(descriptor) == 1,
            environment: ProcessInfo.processInfo.environment)
    }

    init(descriptor: Int32, isDevice: Bool, environment: [String: String]) {
        let kind = environment["TERM", default: ""]
        self.init(
            isTerminal: isDevice && !kind.isEmpty && kind != "dumb",
            hasColor: environment["NO_COLOR", default: ""].isEmpty
        ) {
            var size = winsize()
            let isKnown = ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
            return isKnown ? Int(size.ws_col) : Self.usualColumns
        }
    }
}

/// Columns that a character takes: 0 for a mark on the one before it, 2 for a wide one, 1 for one that is not known.
func columns(of scalar: Unicode.Scalar) -> Int {
    if scalar.isASCII { return 1 }
    let width = systemWidth?(scalar.value) ?? -1
    return width < 0 ? 1 : Int(width)
}

/// The longest prefix that fits this many columns.
func clipped(_ text: String, to room: Int) -> String {
    var result = String.UnicodeScalarView()
    var used = 0
    for scalar in text.unicodeScalars {
        used += columns(of: scalar)
        if used > room { break }
        result.append(scalar)
    }
    return String(result)
}

/// The system's `wcwidth`, found by its name because Swift on Linux does not show it, with a locale that it can use.
private let systemWidth: (@convention(c) (UInt32) -> Int32)? = {
    guard let symbol = dlsym(dlopen(nil, RTLD_NOW), "wcwidth") else { return nil }
    let width = unsafeBitCast(symbol, to: (@convention(c) (UInt32) -> Int32).self)
    setlocale(LC_CTYPE, "")
    // A locale that knows no wide characters, such as C, gives way: texts are UTF-8 here.
    if width(0x6F22) != 2 { setlocale(LC_CTYPE, "C.UTF-8") }
    return width
}()
