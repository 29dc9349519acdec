import Foundation

/// The window that shows a stream.
struct Window {
    /// In a narrower window, the terminal breaks lines and no status line is drawn.
    static let leastColumns = 20
    /// The width of a terminal that does not report its own.
    private static let usualColumns = 80

    /// Whether the stream accepts control codes.
    let isTerminal: Bool
    /// Whether text may be bold or reversed.
    let hasColor: Bool
    /// The current width, which changes when the window is resized.
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

/// The columns of a character: 0 for a combining mark, 2 for a wide character, 1 if unknown.
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

/// The system's `wcwidth`, looked up by name because Swift on Linux does not import it, with a suitable locale.
private let systemWidth: (@convention(c) (UInt32) -> Int32)? = {
    guard let symbol = dlsym(dlopen(nil, RTLD_NOW), "wcwidth") else { return nil }
    let width = unsafeBitCast(symbol, to: (@convention(c) (UInt32) -> Int32).self)
    setlocale(LC_CTYPE, "")
    // Replaces a locale without wide characters, such as C: texts here are UTF-8.
    if width(0x6F22) != 2 { setlocale(LC_CTYPE, "C.UTF-8") }
    return width
}()
