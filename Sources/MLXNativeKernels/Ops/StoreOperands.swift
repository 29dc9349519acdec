#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// What the ops that store tokens have in common, in the types of the C API: a source, and rows.
struct StoreOperands {
    private let source: (keys: HeadsView, values: HeadsView?)
    private let keys: mnk_heads_view
    private let values: mnk_heads_view?
    private let rows: KVCacheWrite.Rows?
    private let sequences: [UInt32]
    private let positions: [UInt32]

    /// Pointers that are valid for one call.
    struct Pointers {
        let keys: UnsafePointer<mnk_heads_view>
        let values: UnsafePointer<mnk_heads_view>?
        let sequences: mnk_row_indices
        let positions: mnk_row_indices
    }

    init(
        keys: HeadsView, values: HeadsView?, layout: KVLayout, rows: KVCacheWrite.Rows?, op: String
    ) throws(KernelError) {
        source = (keys, values)
        self.keys = try keys.read(as: layout).descriptor(of: "keys", op: op)
        self.values = try values?.read(as: layout).descriptor(of: "values", op: op)
        self.rows = rows
        sequences = try rows?.sequences.list("a row's sequence", op: op) ?? []
        positions = try rows?.positions.list("a row's position", op: op) ?? []
    }

    func withPointers<Value>(_ body: (Pointers) -> Value) -> Value {
        sequences.withUnsafeBufferPointer { sequences in
            positions.withUnsafeBufferPointer { positions in
                withUnsafePointer(to: keys) { keys in
                    withOptionalPointer(to: values) { values in
                        withExtendedLifetime((source, rows)) {
                            body(
                                Pointers(
                                    keys: keys, values: values,
                                    sequences: mnk_row_indices(
                                        list: sequences.listAddress, list_count: sequences.count,
                                        tensor: rows?.sequences.tensor),
                                    positions: mnk_row_indices(
                                        list: positions.listAddress, list_count: positions.count,
                                        tensor: rows?.positions.tensor)))
                        }
                    }
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
