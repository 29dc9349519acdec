/// A pointer to the value, or null if there is none.
func withOptionalPointer<Pointee, Value>(
    to pointee: Pointee?, _ body: (UnsafePointer<Pointee>?) -> Value
) -> Value {
    guard let pointee else { return body(nil) }
    return withUnsafePointer(to: pointee) { body($0) }
}

extension UnsafeBufferPointer {
    /// The address of the elements, or null if there are none: a list without a count is an error in C.
    var listAddress: UnsafePointer<Element>? { isEmpty ? nil : baseAddress }
}

/// A pointer to the first element, or null if there is no list. C tells an empty list from none by the pointer, and an
/// empty array may have none.
func withListPointer<Element, Value>(
    to list: [Element]?, _ body: (UnsafePointer<Element>?) -> Value
) -> Value {
    guard let list else { return body(nil) }
    return list.withUnsafeBufferPointer {
        body($0.baseAddress ?? UnsafePointer(bitPattern: MemoryLayout<Element>.alignment))
    }
}
