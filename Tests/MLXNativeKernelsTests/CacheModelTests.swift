import MLXNativeKernels
import XCTest

/// Random appends, batch appends, truncations, resets and abandoned steps, compared with a simple model of a cache.
final class CacheModelTests: DeviceTestCase {
    /// One sequence: the position and token in each slot.
    private struct Model {
        let capacity: Int
        let pinned: Int
        let isRing: Bool
        var slots: [(position: Int, token: Int)?]
        var next = 0

        init(capacity: Int, pinned: Int, isRing: Bool) {
            self.capacity = capacity
            self.pinned = pinned
            self.isRing = isRing
            slots = Array(repeating: nil, count: capacity)
        }

        func slot(_ position: Int) -> Int {
            guard isRing && position >= capacity else { return position }
            return pinned + (position - pinned) % (capacity - pinned)
        }

        mutating func append(token: Int) {
            slots[slot(next)] = (next, token)
            next += 1
        }

        /// Whether the cache still holds the positions before this one: pinned positions always, others until the ring
        /// overwrites them.
        func canTruncate(to position: Int) -> Bool {
            let oldest = slots.compactMap { $0?.position }.filter { $0 >= pinned }.min() ?? pinned
            return position <= pinned ? position <= next : position >= oldest && position <= next
        }

        mutating func truncate(to position: Int) {
            next = position
            guard position <= pinned else { return }
            for slot in slots.indices where (slots[slot]?.position ?? 0) >= position { slots[slot] = nil }
        }

        /// Slots with a valid position; the contents of other slots do not matter.
        var kept: [(slot: Int, position: Int, token: Int)] {
            slots.enumerated().compactMap { slot, held in
                guard let held, held.position < next else { return nil }
                return (slot, held.position, held.token)
            }
        }
    }

    private func runRandomWork(seed: UInt64, on device: KernelDevice) throws {
        var random = SeededGenerator(seed: seed)
        let isRing = Int.random(in: 0..<4, using: &random) > 0
        let capacity = Int.random(in: 1...9, using: &random)
        let pinned = isRing ? Int.random(in: 0..<capacity, using: &random) : 0
        let dimensions = AttentionCache.Dimensions(
            kvHeads: .random(in: 1...3, using: &random), headDim: .random(in: 1...9, using: &random),
            capacity: capacity, sequences: .random(in: 1...3, using: &random),
            valueHeadDim: .random(in: 1...9, using: &random))
        let dtype = [ElementType.float32, .float16, .bfloat16].randomElement(using: &random)!
        let cache = try AttentionCache(
            dimensions, storage: .dense(dtype), whenFull: isRing ? .overwriteOldest(keepingFirst: pinned) : .fail,
            isStorageOnly: true, on: device)
        var models = Array(
            repeating: Model(capacity: capacity, pinned: pinned, isRing: isRing), count: dimensions.sequences)
        var token = 0

        func source(_ first: Int, _ count: Int, headDim: Int) throws -> Tensor {
            let numbers = (first..<first + count).flatMap { token in
                (0..<dimensions.kvHeads).flatMap { head in
                    (0..<headDim).map { number(position: token, head: head, element: $0) }
                }
            }
            return try Tensor(numbers, shape: [count, dimensions.kvHeads, headDim], dtype: .float32, on: device)
        }

        for round in 0..<30 {
            let context = "seed \(seed), round \(round), \(dimensions), ring \(isRing), pinned \(pinned), \(dtype)"
            let sequence = Int.random(in: 0..<dimensions.sequences, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0...4:
                let counts = [Int.random(in: 0...capacity + 3, using: &random), Int.random(in: 0...2, using: &random)]
                let total = counts[0] + counts[1]
                let fits = isRing || models[sequence].next + total <= capacity
                let isAbandoned = Int.random(in: 0..<5, using: &random) == 0
                let keys = try source(token, total, headDim: dimensions.headDim)
                let values = try source(token, total, headDim: dimensions.valueHeadDim)
                do {
                    try device.encode { step in
                        try step.append(
                            keys: keys[0..<counts[0]], values: values[0..<counts[0]], to: cache, sequence: sequence)
                        try step.append(
                            keys: keys[counts[0]..<total], values: values[counts[0]..<total], to: cache,
                            sequence: sequence)
                        if isAbandoned { throw Abandoned() }
                    }.wait()
                    XCTAssert(fits && !isAbandoned, context)
                    for _ in 0..<total {
                        models[sequence].append(token: token)
                        token += 1
                    }
                } catch is Abandoned {
                    XCTAssert(fits && isAbandoned, context)
                } catch {
                    XCTAssertFalse(fits, "\(context): \(error)")
                }
            case 5...6:
                let sequences = (0..<dimensions.sequences).shuffled(using: &random)
                    .prefix(.random(in: 1...dimensions.sequences, using: &random))
                guard isRing || sequences.allSatisfy({ models[$0].next < capacity }) else { continue }
                let keys = try source(token, sequences.count, headDim: dimensions.headDim)
                let values = try source(token, sequences.count, headDim: dimensions.valueHeadDim)
                try device.encode {
                    try $0.append(keys: keys, values: values, to: cache, sequences: Array(sequences))
                }.wait()
                for sequence in sequences {
                    models[sequence].append(token: token)
                    token += 1
                }
            case 7...8:
                let position = Int.random(in: 0...models[sequence].next + 1, using: &random)
                let isAllowed = models[sequence].canTruncate(to: position)
                do {
                    try cache.truncate(to: position, sequence: sequence)
                    XCTAssert(isAllowed, "\(context): truncated to \(position)")
                    models[sequence].truncate(to: position)
                } catch {
                    XCTAssertFalse(isAllowed, "\(context): \(error)")
                }
            default:
                try cache.reset(sequence: sequence)
                models[sequence].truncate(to: 0)
            }
            try compare(cache, models, context)
            if testRun?.totalFailureCount != 0 { return }
        }
    }

    private func compare(_ cache: AttentionCache, _ models: [Model], _ context: String) throws {
        let dimensions = cache.dimensions
        for (tensor, headDim) in [(cache.keys, dimensions.headDim), (cache.values, dimensions.valueHeadDim)] {
            let stored = try tensor.array(of: Float.self)
            for (sequence, model) in models.enumerated() {
                XCTAssertEqual(try cache.nextPosition(ofSequence: sequence), model.next, context)
                XCTAssertEqual(
                    try cache.count(ofSequence: sequence), model.kept.count, "\(context), sequence \(sequence)")
                for (slot, position, token) in model.kept {
                    XCTAssertEqual(cache.slot(ofPosition: position), slot, context)
                    for head in 0..<dimensions.kvHeads {
                        let start = ((sequence * dimensions.kvHeads + head) * dimensions.capacity + slot) * headDim
                        assertSame(
                            Array(stored[start..<start + headDim]),
                            (0..<headDim).map { number(position: token, head: head, element: $0) },
                            "\(context): sequence \(sequence), head \(head), slot \(slot), position \(position)")
                    }
                }
            }
        }
    }

    func testRandomWorkMatchesTheModel() throws {
        for seed in 1...60 { try runRandomWork(seed: UInt64(seed), on: device) }
    }

    func testRandomWorkMatchesTheModelInRandomOrder() throws {
        for seed in 100..<130 {
            let options = HostOptions(workers: 2, orderSeed: UInt64(seed), checking: .guarded)
            try runRandomWork(seed: UInt64(seed), on: KernelDevice.host(options))
        }
    }
}
