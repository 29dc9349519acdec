/// Lists that structs of C point to, while a call lasts.
final class CallMemory {
    private var lists: [UnsafeMutableRawPointer] = []

    /// A copy of a list, or null if there is none in it: a list without a count is an error in C.
    func keep<Element>(_ list: [Element]) -> UnsafePointer<Element>? {
        list.isEmpty ? nil : copy(of: list)
    }

    /// A copy of a list. C tells an empty list from none by the pointer.
    func keep<Element>(_ list: [Element]?) -> UnsafePointer<Element>? {
        list.map { copy(of: $0) }
    }

    /// A string of C, or null if there is none.
    func keep(_ string: String?) -> UnsafePointer<CChar>? {
        string.map { copy(of: Array($0.utf8CString)) }
    }

    /// A string of C.
    func keep(_ string: String) -> UnsafePointer<CChar> {
        copy(of: Array(string.utf8CString))
    }

    /// A copy of a list, also of an empty one.
    func copy<Element>(of list: [Element]) -> UnsafePointer<Element> {
        let copy = UnsafeMutablePointer<Element>.allocate(capacity: max(list.count, 1))
        copy.initialize(from: list, count: list.count)
        lists.append(copy)
        return UnsafePointer(copy)
    }

    // Elements are numbers and structs of C, which need no deinitialization.
    deinit { for list in lists { list.deallocate() } }
}

/// An op, which has a struct of C.
protocol Op: Sendable {
    associatedtype Descriptor

    /// What errors call it.
    static var name: String { get }

    func descriptor(of owner: String, op: String, in memory: CallMemory) throws(KernelError) -> Descriptor
}

extension Op {
    /// Calls C with the op's struct. What it points to lives as long.
    func withDescriptor<Value>(
        _ body: (UnsafePointer<Descriptor>) throws(KernelError) -> Value
    ) throws(KernelError) -> Value {
        let memory = CallMemory()
        defer { withExtendedLifetime((self, memory)) {} }
        let given = try descriptor(of: "", op: Self.name, in: memory)
        return try withUnsafePointer(to: given) { (pointer) throws(KernelError) in try body(pointer) }
    }
}
