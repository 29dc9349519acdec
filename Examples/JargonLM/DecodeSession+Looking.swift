import Foundation
import MLXNativeKernels

/// What can be seen of a session: which position each slot holds, and where a head looks.
extension DecodeSession {
    /// The position that each slot of a layer's cache holds, `nil` where it holds none.
    public func slots(ofLayer layer: Int) -> [Int?] {
        let cache = caches[layer]
        var slots = [Int?](repeating: nil, count: cache.dimensions.capacity)
        for position in held(byLayer: layer) {
            if let slot = cache.slot(ofPosition: position) { slots[slot] = position }
        }
        return slots
    }

    /// The positions that a layer's cache holds.
    public func held(byLayer layer: Int) -> Range<Int> {
        let cache = caches[layer]
        return cache.nextPosition - cache.count..<cache.nextPosition
    }

    /// How much each position weighs in what one head of a layer attended to for the newest token; 0 where the layer
    /// no longer sees it.
    ///
    /// Kernels keep no weights. They are worked out here, from the keys that the cache holds and the newest queries.
    public func attention(layer: Int, head: Int) throws(KernelError) -> [Float] {
        let sizes = model.configuration
        let seen = held(byLayer: layer)
        var weights = [Float](repeating: 0, count: position)
        guard !seen.isEmpty else { return weights }
        let keys = try stored(byLayer: layer, positions: seen).keys
        let query = newest[layer].queries[head * sizes.headDim..<(head + 1) * sizes.headDim]
        let kvHead = head / (sizes.heads / sizes.kvHeads)
        let scale = 1 / Float(sizes.headDim).squareRoot()
        let scores = seen.indices.map { index in
            let start = ((index - seen.lowerBound) * sizes.kvHeads + kvHead) * sizes.headDim
            return zip(query, keys[start..<start + sizes.headDim]).reduce(0) { $0 + $1.0 * $1.1 } * scale
        }
        let highest = scores.max() ?? 0
        let parts = scores.map { exp($0 - highest) }
        let sum = parts.reduce(0, +)
        for (position, part) in zip(seen, parts) { weights[position] = part / sum }
        return weights
    }

    /// Keys and values as a cache gives them back: position by position, in each head by head.
    func stored(
        byLayer layer: Int, positions: Range<Int>
    ) throws(KernelError) -> (keys: [Float], values: [Float]) {
        let sizes = model.configuration
        let cache = caches[layer]
        guard storage.isQuantized else {
            let slots = positions.compactMap { cache.slot(ofPosition: $0) }
            func gathered(_ plane: Tensor) throws(KernelError) -> [Float] {
                let all = try plane.array(of: Float.self)
                return slots.flatMap { slot in
                    (0..<sizes.kvHeads).flatMap { head in
                        let start = (head * cache.dimensions.capacity + slot) * sizes.headDim
                        return all[start..<start + sizes.headDim]
                    }
                }
            }
            return (try gathered(cache.keys), try gathered(cache.values))
        }
        let shape = [positions.count, sizes.kvHeads, sizes.headDim]
        let keys = try Tensor.zeros(shape: shape, on: device)
        let values = try Tensor.zeros(shape: shape, on: device)
        try run("look at a cache") { step throws(KernelError) in
            try step.dequantize(cache, from: positions.lowerBound, keys: keys, values: values)
        }
        return (try keys.array(of: Float.self), try values.array(of: Float.self))
    }

    private func run(_ label: String, _ record: (KernelEncoder) throws(KernelError) -> Void) throws(KernelError) {
        do {
            try device.encode(label: label) { try record($0) }.wait()
        } catch {
            guard let error = error as? KernelError else {
                preconditionFailure("an encoder throws its own errors alone")
            }
            throw error
        }
    }
}
