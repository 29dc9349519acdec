/// A reason why Apple's compiler might refuse a source, or interpret it differently than the Host device.
public struct Finding: Hashable, Sendable, Comparable, CustomStringConvertible {
    public enum Checker: String, Sendable {
        /// The strict compile.
        case compile
        /// The list of functions.
        case list
        /// The token rules.
        case lint
    }

    public let checker: Checker
    public let file: String
    public let line: Int
    public let message: String

    public init(_ checker: Checker, file: String, line: Int, _ message: String) {
        self.checker = checker
        self.file = file
        self.line = line
        self.message = message
    }

    public var description: String { "\(file):\(line): \(message)" }

    public static func < (a: Finding, b: Finding) -> Bool {
        (a.file, a.line, a.message) < (b.file, b.line, b.message)
    }
}
