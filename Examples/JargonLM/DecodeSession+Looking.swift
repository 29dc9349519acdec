import Foundation
import MLXNativeKernels

/// Inspects a session: the position in each slot, and the attention of a head.
extension DecodeSession {
    /// The position in each slot of a layer's cache; `nil` if the slot is empty.
    public func slots(ofLayer layer: Int) throws(KernelError) -> [Int?] {
        let cache = caches[layer]
        var slots = [Int?](repeating: nil, count: cache.dimensions.capacity)
        for position in try held(byLayer: layer) {
            if let slot = cache.slot(ofPosition: position) { slots[slot] = position }
        }
        return slots
    }

    /// The positions that a layer's cache holds.
    public func held(byLayer layer: Int) throws(KernelError) -> Range<Int> {
        let cache = caches[layer]
        let end = try cache.nextPosition
        return end - (try cache.count)..<end
    }

    /// The attention weights of the newest token for each position, by head of a layer; 0 for positions that the layer
    /// no longer sees.
    ///
    /// Kernels do not store weights. This recomputes them from the cached keys and the newest queries.
    public func attention(layer: Int, heads: Range<Int>) throws -> [[Float]] {
        let sizes = model.configuration
        let held = try held(byLayer: layer)
        let seen = held.suffix(sizes.seen(byLayer: layer))
        guard !seen.isEmpty, seen.upperBound == position else {
            return Array(repeating: Array(repeating: 0, count: position), count: heads.count)
        }
        let keys = try stored(.keys, byLayer: layer)
        let queries = try rotated(newest[layer].queries, heads: sizes.heads, from: position - 1)
        let scale = 1 / Float(sizes.headDim).squareRoot()
        return heads.map { head in
            let query = queries[head * sizes.headDim..<(head + 1) * sizes.headDim]
            let kvHead = head / (sizes.heads / sizes.kvHeads)
            let scores = seen.map { index in
                let start = ((index - held.lowerBound) * sizes.kvHeads + kvHead) * sizes.headDim
                return zip(query, keys[start..<start + sizes.headDim]).reduce(0) { $0 + $1.0 * $1.1 } * scale
            }
            let highest = scores.max() ?? 0
            let parts = scores.map { exp($0 - highest) }
            let sum = parts.reduce(0, +)
            return Array(repeating: 0, count: seen.lowerBound) + parts.map { $0 / sum }
        }
    }

    /// Rotates the vectors of consecutive tokens, starting at a position, with the kernel.
    func rotated(_ vectors: [Float], heads: Int, from position: Int) throws -> [Float] {
        let headDim = model.configuration.headDim
        let tensor = try Tensor.zeros(shape: [vectors.count / (heads * headDim), heads, headDim], on: device)
        try tensor.write(vectors)
        try device.encode(label: "rotate again") { step in
            try step.rotate(tensor, positions: .text(startingAt: position), with: rotary)
        }.wait()
        return try tensor.array(of: Float.self)
    }

    enum Plane { case keys, values }

    /// The keys or values of a layer's cache after dequantization: by position, then by head.
    func stored(_ plane: Plane, byLayer layer: Int) throws -> [Float] {
        let sizes = model.configuration
        let cache = caches[layer]
        let positions = try held(byLayer: layer)
        guard storage.isQuantized else {
            let all = try (plane == .keys ? cache.keys : cache.values).array(of: Float.self)
            return positions.compactMap { cache.slot(ofPosition: $0) }.flatMap { slot in
                (0..<sizes.kvHeads).flatMap { head in
                    let start = (head * cache.dimensions.capacity + slot) * sizes.headDim
                    return all[start..<start + sizes.headDim]
                }
            }
        }
        let rows = try Tensor.zeros(shape: [positions.count, sizes.kvHeads, sizes.headDim], on: device)
        try device.encode(label: "look at a cache") { step in
            try step.dequantize(
                cache, from: positions.lowerBound, keys: plane == .keys ? rows : nil,
                values: plane == .values ? rows : nil)
        }.wait()
        return try rows.array(of: Float.self)
    }
}
