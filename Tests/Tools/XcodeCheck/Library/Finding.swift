/// A reason why Xcode might refuse the project, or might build something else than the package does.
public struct Finding: Hashable, Sendable, Comparable, CustomStringConvertible {
    public let file: String
    public let line: Int
    public let message: String

    public init(_ file: String, line: Int = 1, _ message: String) {
        self.file = file
        self.line = line
        self.message = message
    }

    public var description: String { "\(file):\(line): \(message)" }

    public static func < (a: Finding, b: Finding) -> Bool {
        (a.file, a.line, a.message) < (b.file, b.line, b.message)
    }
}
