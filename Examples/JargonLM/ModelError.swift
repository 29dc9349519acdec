import Foundation

/// Why a model could not be had, or could not go on, in parts as those of a kernel's error.
public struct ModelError: Error, Equatable, Sendable {
    /// The kinds of failure.
    public enum Code: String, Sendable, CaseIterable {
        /// A file is missing or cannot be read.
        case fileNotFound
        /// A file is not what its format says.
        case malformed
        /// A file is whole, and holds something that this code cannot use.
        case unsupported
        /// A tensor is missing, or has another shape than the model's.
        case wrongTensor
        /// A weight is NaN or infinite.
        case notFinite
        /// The text is as long as the model can read.
        case contextFull
        /// The device failed within a token, so that layers disagree about the text.
        case interrupted
        /// A number that the caller gave is out of its range.
        case invalidArgument
    }

    /// The kind of failure.
    public let code: Code
    /// What is wrong.
    public let what: String
    /// What was found.
    public let got: String
    /// What would have been right.
    public let expected: String
    /// What to do about it.
    public let fix: String

    /// An error of these parts.
    public init(code: Code, what: String, got: String, expected: String, fix: String) {
        self.code = code
        self.what = what
        self.got = got
        self.expected = expected
        self.fix = fix
    }
}

extension ModelError: LocalizedError, CustomStringConvertible {
    public var description: String { "\(what) (got \(got), expected \(expected)). \(fix)" }
    public var errorDescription: String? { description }
    public var recoverySuggestion: String? { fix }
}
