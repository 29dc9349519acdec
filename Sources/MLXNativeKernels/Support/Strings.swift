#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// The string's C text, or null if there is none.
func withOptionalCString<Value>(_ string: String?, _ body: (UnsafePointer<CChar>?) -> Value) -> Value {
    guard let string else { return body(nil) }
    return string.withCString { body($0) }
}

extension String {
    /// A text that the C API leaves to the caller; empty if it could not be made.
    init(releasing text: UnsafeMutablePointer<CChar>?) {
        self = text.map { String(cString: $0) } ?? ""
        mnk_text_release(text)
    }
}
