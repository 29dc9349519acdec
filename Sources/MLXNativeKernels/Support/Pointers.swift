/// A pointer to the value, or null where there is none.
func withOptionalPointer<Pointee, Value>(
    to pointee: Pointee?, _ body: (UnsafePointer<Pointee>?) -> Value
) -> Value {
    guard let pointee else { return body(nil) }
    return withUnsafePointer(to: pointee) { body($0) }
}
