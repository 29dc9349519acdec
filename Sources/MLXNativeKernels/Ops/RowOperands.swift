#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// The rows of an op that stores tokens, in the types of the C door.
struct RowOperands {
    private let rows: KVCacheWrite.Rows?
    private let sequences: [UInt32]
    private let positions: [UInt32]

    init(_ rows: KVCacheWrite.Rows?, op: String) throws(KernelError) {
        self.rows = rows
        sequences = try rows?.sequences.list("a row's sequence", op: op) ?? []
        positions = try rows?.positions.list("a row's position", op: op) ?? []
    }

    /// Calls with sequences and positions, which are valid for the call.
    func withIndices<Value>(_ body: (mnk_row_indices, mnk_row_indices) -> Value) -> Value {
        sequences.withUnsafeBufferPointer { sequences in
            positions.withUnsafeBufferPointer { positions in
                withExtendedLifetime(rows) {
                    body(
                        mnk_row_indices(
                            list: sequences.baseAddress, list_count: sequences.count, tensor: rows?.sequences.tensor),
                        mnk_row_indices(
                            list: positions.baseAddress, list_count: positions.count, tensor: rows?.positions.tensor))
                }
            }
        }
    }
}

extension KVCacheWrite.Indices {
    fileprivate func list(_ name: String, op: String) throws(KernelError) -> [UInt32] {
        guard case .list(let list) = self else { return [] }
        return try numbers(list, name, op: op)
    }

    fileprivate var tensor: OpaquePointer? {
        guard case .tensor(let tensor) = self else { return nil }
        return tensor.handle.pointer
    }
}
