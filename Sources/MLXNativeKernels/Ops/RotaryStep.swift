#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// How queries and keys of a step over a cache are rotated, as ``MultiRoPE`` defines it.
///
/// Pass queries and keys that are not rotated. The call throws if the same step has rotated them by positions of a
/// cache; it cannot see rotations by numbers, or in earlier steps.
///
/// ```swift
/// let rotary = RotaryEmbedding(base: 1e6)
/// let done = try device.encode { step in
///     try step.appendAndAttend(queries: q, keys: k, values: v, rotary: .init(rotary), over: cache, into: out)
/// }
/// ```
public struct RotaryStep: Sendable {
    /// How positions rotate pairs.
    public var embedding: RotaryEmbedding
    /// The position of each of the step's tokens; `nil` means the positions that they get in the cache.
    public var positions: MultiRoPE.Positions?
    /// Added to all positions of a sequence, such as a model's rope delta.
    public var offsets: MultiRoPE.Offsets?

    /// A rotation of a step. It is checked when it is used.
    public init(
        _ embedding: RotaryEmbedding, positions: MultiRoPE.Positions? = nil, offsets: MultiRoPE.Offsets? = nil
    ) {
        self.embedding = embedding
        self.positions = positions
        self.offsets = offsets
    }
}

/// The rotation of a step in the types of the C API. The step must outlive it.
struct RotaryStepOperands: ~Copyable {
    private let factors: [Float]
    private let descriptor: mnk_rotary_step
    private let numbers: RotaryNumbers

    init(_ step: RotaryStep, op: String) throws(KernelError) {
        var descriptor = mnk_rotary_step()
        descriptor.embedding = try step.embedding.descriptor(op: op)
        if case .text(let first) = step.positions {
            descriptor.has_first_position = true
            descriptor.first_position = Int64(first)
        }
        numbers = try RotaryNumbers(step.positions, step.offsets, op: op)
        self.descriptor = descriptor
        factors = step.embedding.frequencyFactors
    }

    func withDescriptor<Value>(_ body: (UnsafePointer<mnk_rotary_step>) -> Value) -> Value {
        numbers.withPointers { positions, next, offsets in
            factors.withUnsafeBufferPointer { factors in
                var complete = descriptor
                complete.positions = positions
                complete.next = next
                complete.offsets = offsets
                complete.embedding.frequency_factors = factors.listAddress
                complete.embedding.frequency_factor_count = factors.count
                return body(&complete)
            }
        }
    }
}

/// Positions and offsets in the types of the C API.
struct RotaryNumbers: ~Copyable {
    private let positions: mnk_rotary_numbers
    private let next: mnk_next_positions
    private let offsets: mnk_rotary_numbers
    private let positionList: [Int32]?
    private let offsetList: [Int32]?
    private let rows: ListedRows?

    init(_ positions: MultiRoPE.Positions?, _ offsets: MultiRoPE.Offsets?, op: String) throws(KernelError) {
        let positionList = try positions?.list(op: op)
        let offsetList = try offsets?.list(op: op)
        var cPositions = mnk_rotary_numbers()
        var cNext = mnk_next_positions()
        var cOffsets = mnk_rotary_numbers()
        if case .tensor(let tensor) = positions { cPositions.tensor = tensor.handle.pointer }
        if case .perAxis(let axes) = positions {
            cPositions.list_axes = try UInt32(axes.count, "the number of axes", op: op)
        }
        if case .tensor(let tensor) = offsets { cOffsets.tensor = tensor.handle.pointer }
        if case .next(let cache, let sequences, let rowCounts) = positions {
            cNext.cache = cache.handle.pointer
            rows = try ListedRows(of: cache, sequences, rowCounts: rowCounts, op: op)
        } else {
            rows = nil
        }
        self.positions = cPositions
        next = cNext
        self.offsets = cOffsets
        self.positionList = positionList
        self.offsetList = offsetList
    }

    /// Tensors and caches must outlive the call.
    func withPointers<Value>(
        _ body: (mnk_rotary_numbers, mnk_next_positions, mnk_rotary_numbers) -> Value
    ) -> Value {
        switch rows {
        case .none: withLists { body($0, next, $1) }
        case .some(let rows):
            rows.withPointers { sequences, rowCounts, count in
                var next = next
                next.sequences = sequences
                next.row_counts = rowCounts
                next.sequence_count = count
                return withLists { body($0, next, $1) }
            }
        }
    }

    private func withLists<Value>(_ body: (mnk_rotary_numbers, mnk_rotary_numbers) -> Value) -> Value {
        withListPointer(to: positionList) { positionPointer in
            withListPointer(to: offsetList) { offsetPointer in
                var (positions, offsets) = (positions, offsets)
                positions.list = positionPointer
                positions.list_count = positionList?.count ?? 0
                offsets.list = offsetPointer
                offsets.list_count = offsetList?.count ?? 0
                return body(positions, offsets)
            }
        }
    }
}

extension MultiRoPE.Positions {
    fileprivate func list(op: String) throws(KernelError) -> [Int32]? {
        let axes: [[Int]]
        switch self {
        case .text, .tensor, .next: return nil
        case .perToken(let positions): axes = [positions]
        case .perAxis(let positions): axes = positions
        }
        guard axes.allSatisfy({ $0.count == axes[0].count }) else {
            throw .invalid(
                op: op, what: "axes hold different numbers of positions", got: "\(axes.map(\.count))",
                expected: "one position for each token on each axis",
                fix: "Give every token a position on each axis.")
        }
        return try numbers(Array(axes.joined()), "a position", op: op)
    }
}

extension MultiRoPE.Offsets {
    fileprivate func list(op: String) throws(KernelError) -> [Int32]? {
        guard case .list(let list) = self else { return nil }
        return try numbers(list, "an offset", op: op)
    }
}
