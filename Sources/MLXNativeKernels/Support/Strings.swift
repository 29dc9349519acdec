/// The string's C text, or null where there is none.
func withOptionalCString<Value>(_ string: String?, _ body: (UnsafePointer<CChar>?) -> Value) -> Value {
    guard let string else { return body(nil) }
    return string.withCString { body($0) }
}
