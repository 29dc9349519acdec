import Foundation

/// A failure to load or run a model, with the same parts as a kernel error.
public struct ModelError: Error, Equatable, Sendable {
    /// The kinds of failure.
    public enum Code: String, Sendable, CaseIterable {
        /// A file is missing or cannot be read.
        case fileNotFound
        /// A file does not conform to its format.
        case malformed
        /// A file is valid but has content that this code does not support.
        case unsupported
        /// A tensor is missing or has the wrong shape.
        case wrongTensor
        /// A weight is NaN or infinite.
        case notFinite
        /// The text has reached the model's context length.
        case contextFull
        /// The device failed within a token, so the layers' caches differ.
        case interrupted
        /// An argument is out of range.
        case invalidArgument
    }

    /// The kind of failure.
    public let code: Code
    /// What is wrong.
    public let what: String
    /// What was found.
    public let got: String
    /// What was expected.
    public let expected: String
    /// How to fix it.
    public let fix: String

    /// An error with these parts.
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
