import Foundation

#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// An error, in parts that a program can branch on and a person can act on.
///
/// Every call of this library that can fail throws a `KernelError`. A call that threw has encoded nothing and changed
/// no memory. ``description`` combines the parts:
///
/// ```swift
/// do {
///     try cache.truncate(to: 900)
/// } catch let error as KernelError {
///     print(error)                  // AttentionCache: … (got 900, expected …). …
///     print(error.code, error.fix)
/// }
/// ```
public struct KernelError: Error, Equatable, Sendable {
    /// The kind of failure.
    public let code: Code
    /// The op or the object that refused the call, such as `KVCacheWrite`.
    public let op: String
    /// What is wrong.
    public let what: String
    /// What was passed.
    public let got: String
    /// What was expected.
    public let expected: String
    /// How to fix it.
    public let fix: String
    /// Whether the same call may succeed later.
    public let isRetryable: Bool
}

extension KernelError: CustomStringConvertible {
    /// All parts as one string: `op: what (got …, expected …). Fix.`
    public var description: String {
        let compared = [("got", got), ("expected", expected)].filter { !$0.1.isEmpty }.map { "\($0.0) \($0.1)" }
        return (op.isEmpty ? "" : "\(op): ") + what
            + (compared.isEmpty ? "." : " (\(compared.joined(separator: ", "))).")
            + (fix.isEmpty ? "" : " \(fix)")
    }
}

extension KernelError: CustomDebugStringConvertible {
    /// ``description`` with the version of this package and the ``code``, for bug reports.
    public var debugDescription: String { "MLXNativeKernels \(MNK_VERSION) [\(code)] \(description)" }
}

extension KernelError: LocalizedError {
    /// The same string as ``description``.
    public var errorDescription: String? { description }
    /// What is wrong, without the numbers.
    public var failureReason: String? { what }
    /// The same string as ``fix``.
    public var recoverySuggestion: String? { fix }
}
