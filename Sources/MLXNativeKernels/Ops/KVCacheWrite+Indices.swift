#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension KVCacheWrite {
    /// One number for each token that is stored.
    public enum Indices: Sendable, ExpressibleByArrayLiteral {
        /// Numbers known in advance; they are checked.
        case list([Int])
        /// A `u32` tensor that the kernel reads.
        case tensor(Tensor)

        public init(arrayLiteral elements: Int...) { self = .list(elements) }
    }
}

extension KVCacheWrite.Indices {
    func descriptor(of owner: String, op: String, in memory: CallMemory) throws(KernelError) -> mnk_row_indices {
        switch self {
        case .list(let list):
            mnk_row_indices(
                list: memory.keep(try numbers(list, "a number in \(owner)", op: op)), list_count: list.count,
                tensor: nil)
        case .tensor(let tensor): mnk_row_indices(list: nil, list_count: 0, tensor: tensor.handle.pointer)
        }
    }
}
