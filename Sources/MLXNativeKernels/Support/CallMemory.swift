/// Lists that structs of C point to, while a call lasts. Elements are numbers and structs of C.
final class CallMemory {
    /// The newest block of memory. Each begins with the address of the one before, so that a list takes one allocation.
    private var newest: UnsafeMutableRawPointer?
    private static let header = 16

    /// A copy of a list, or null if there is none in it: a list without a count is an error in C.
    func keep<Element>(_ list: [Element]) -> UnsafePointer<Element>? {
        list.isEmpty ? nil : copy(of: list)
    }

    /// The elements of a list in another type. C tells an empty list from none by the pointer.
    func keep<Element, Given>(
        _ list: [Given]?, _ convert: (Given) throws(KernelError) -> Element
    ) throws(KernelError) -> UnsafePointer<Element>? {
        guard let list else { return nil }
        let elements = memory(of: Element.self, count: list.count)
        for (index, given) in list.enumerated() { (elements + index).initialize(to: try convert(given)) }
        return UnsafePointer(elements)
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
        let elements = memory(of: Element.self, count: list.count)
        elements.initialize(from: list, count: list.count)
        return UnsafePointer(elements)
    }

    private func memory<Element>(of type: Element.Type, count: Int) -> UnsafeMutablePointer<Element> {
        let block = UnsafeMutableRawPointer.allocate(
            byteCount: Self.header + count * MemoryLayout<Element>.stride, alignment: Self.header)
        block.storeBytes(of: newest, as: UnsafeMutableRawPointer?.self)
        newest = block
        return (block + Self.header).bindMemory(to: Element.self, capacity: count)
    }

    deinit {
        while let block = newest {
            newest = block.load(as: UnsafeMutableRawPointer?.self)
            block.deallocate()
        }
    }
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
