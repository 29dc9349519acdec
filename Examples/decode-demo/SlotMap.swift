import MLXNativeKernels

/// Which position each slot of a cache holds, as the cache itself tells it.
struct SlotMap {
    /// The position in each slot, `nil` where the slot is empty.
    let positions: [Int?]
    let newest: Int?
    let pinned: Int

    init(of cache: AttentionCache, pinned: Int) {
        var positions = [Int?](repeating: nil, count: cache.dimensions.capacity)
        let next = cache.nextPosition
        let pinnedKept = min(pinned, next)
        let newestKept = next - (cache.count - pinnedKept)
        for position in Array(0..<pinnedKept) + Array(newestKept..<next) {
            if let slot = cache.slot(ofPosition: position) { positions[slot] = position }
        }
        self.positions = positions
        self.pinned = pinned
        newest = next > 0 ? next - 1 : nil
    }

    var kept: [Int] { positions.compactMap { $0 }.sorted() }
}

/// The first element in memory that is not what the slot map says.
struct Mismatch: Error, CustomStringConvertible {
    let description: String
}

extension SlotMap {
    /// Reads the cache back and compares every element with what was appended. Gives the number of rows compared.
    func check(against cache: AttentionCache, _ tokens: MadeUpTokens) throws -> Int {
        var rows = 0
        for part in MadeUpTokens.Part.allCases {
            let stored = try (part == .keys ? cache.keys : cache.values).array(of: Float.self)
            for head in 0..<tokens.heads {
                for (slot, position) in positions.enumerated() {
                    let start = (head * positions.count + slot) * tokens.headDim
                    let row = Array(stored[start..<start + tokens.headDim])
                    let expected =
                        position.map { tokens.row(part, position: $0, head: head) }
                        ?? [Float](repeating: 0, count: tokens.headDim)
                    if let element = row.indices.first(where: { row[$0] != expected[$0] }) {
                        throw Mismatch(
                            description: "\(part) of head \(head), slot \(slot), element \(element) is "
                                + "\(row[element]), expected \(expected[element])"
                                + (position.map { " of position \($0)" } ?? " in an empty slot"))
                    }
                    rows += 1
                }
            }
        }
        return rows
    }
}
