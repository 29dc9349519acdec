#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension String {
    /// A string that the C API returns to its caller; empty if it could not be made.
    init(releasing text: UnsafeMutablePointer<CChar>?) {
        self = text.map { String(cString: $0) } ?? ""
        mnk_text_release(text)
    }
}

/// Checks a path for C, which sees one that ends at the zero, and may read an empty one as none.
func checkPath(_ path: String, op: String) throws(KernelError) {
    guard !path.isEmpty, !path.utf8.contains(0) else {
        throw .invalid(
            op: op, what: "the path names no file", got: path.isEmpty ? "an empty path" : "a path with a zero in it",
            expected: "the name of a file", fix: "Pass the path of a file.")
    }
}

/// Checks a text for C, which sees one that ends at the first zero.
func checkText(_ text: String, _ name: String, op: String) throws(KernelError) {
    guard let zero = text.utf8.firstIndex(of: 0) else { return }
    throw .invalid(
        op: op, what: "\(name) has a zero in it",
        got: "a zero at byte \(text.utf8.distance(from: text.startIndex, to: zero))",
        expected: "text without zeros, which end a string of C", fix: "Remove the zero and what follows it.")
}
