import MLXNativeKernels
import XCTest

/// Views, lists and chunks of tokens through the Swift API. C++ tests cover their results.
final class CacheStepTests: AttentionTestCase {
    /// The same elements with the token and head axes exchanged: `[heads, tokens, headDim]`.
    private func transposed(_ tensor: Tensor) throws -> Tensor {
        let (tokens, heads, headDim) = (tensor.shape[0], tensor.shape[1], tensor.shape[2])
        let all = try tensor.array(of: Float.self)
        let elements = (0..<heads).flatMap { head in
            (0..<tokens).flatMap { token in
                let start = (token * heads + head) * headDim
                return all[start..<start + headDim]
            }
        }
        return try Tensor(elements, shape: [heads, tokens, headDim], on: device)
    }

    /// Queries, keys and values side by side: `[tokens, (heads + 2 * kvHeads) * headDim]`.
    private func fused(_ queries: Tensor, _ tokens: [Token]) throws -> (q: HeadsView, k: HeadsView, v: HeadsView) {
        let all = try queries.array(of: Float.self)
        let width = heads * headDim
        let rows = tokens.enumerated().flatMap { index, token in
            all[index * width..<(index + 1) * width] + token.key + token.value
        }
        let tensor = try Tensor(rows, shape: [tokens.count, (heads + 2 * kvHeads) * headDim], on: device)
        return (
            try .columns(of: tensor, from: 0, heads: heads, headDim: headDim),
            try .columns(of: tensor, from: width, heads: kvHeads, headDim: headDim),
            try .columns(of: tensor, from: width + kvHeads * headDim, heads: kvHeads, headDim: headDim)
        )
    }

    func testViewsOfEveryLayoutReachTheKernels() throws {
        let tokens = someTokens(5)
        let q = try queries(5)
        let keys = try tensor(tokens.map(\.key))
        let values = try tensor(tokens.map(\.value))
        let expected = try attended(q, over: tokens)
        func check(
            _ name: String, _ q: some HeadsViewConvertible, _ keys: some HeadsViewConvertible,
            _ values: some HeadsViewConvertible
        ) throws {
            for storage in [AttentionCache.Storage.dense(.float32), .quantized(.turbo, keys: .bits8, values: .bits8)] {
                let accuracy: Float = storage == .dense(.float32) ? 2e-5 : 0.02
                let cache = try makeCache(storage)
                let out = try zeros(5)
                try device.encode { step in
                    try step.append(keys: keys, values: values, to: cache)
                    try step.attend(q, over: cache, into: out)
                }
                try assertClose(out, expected, accuracy: accuracy, "\(name), \(storage)")

                let again = try makeCache(storage)
                let logSumExp = try Tensor.zeros(shape: [5, heads], on: device)
                let one = try zeros(5)
                try device.encode {
                    try $0.appendAndAttend(
                        queries: q, keys: keys, values: values, over: again, into: one, logSumExp: logSumExp)
                }
                try assertClose(one, expected, accuracy: accuracy, "\(name), \(storage) at once")
                XCTAssert(try logSumExp.array(of: Float.self).allSatisfy { $0 != 0 })
            }
        }
        try check("tensors", q, keys, values)
        let (headQueries, headKeys, headValues) = try (transposed(q), transposed(keys), transposed(values))
        try check("head-major", headQueries.headMajor, headKeys.headMajor, headValues.headMajor)
        try check(
            "MLX's four axes", headQueries.reshaped([1, heads, 5, headDim]).headMajor,
            headKeys.reshaped([1, kvHeads, 5, headDim]).headMajor,
            HeadsView(headValues.reshaped([1, kvHeads, 5, headDim]), layout: .headMajor))
        let columns = try fused(q, tokens)
        try check("columns", columns.q, columns.k, columns.v)
        try check("a mixture", columns.q, keys, headValues.headMajor)
    }

    /// One list serves both calls: a repeated sequence continues, and sees its earlier rows.
    func testListsRepeatSequencesWithRowCounts() throws {
        for (sequences, counts) in [([1, 0, 1], [2, 3, 1]), ([0, 2], [4, 1]), ([2, 2, 2], [1, 0, 3]), ([1], [5])] {
            let cache = try makeCache(sequences: 3)
            var held = [someTokens(3), someTokens(0), someTokens(6)]
            for sequence in 0..<3 { try append(held[sequence], to: cache, sequence: sequence) }
            let total = counts.reduce(0, +)
            let new = someTokens(total)
            let q = try queries(total)
            let out = try zeros(total)
            try device.encode { step in
                try step.append(
                    keys: tensor(new.map(\.key)), values: tensor(new.map(\.value)), to: cache, sequences: sequences,
                    rowCounts: counts)
                try step.attend(q, over: cache, sequences: sequences, rowCounts: counts, into: out)
            }
            var row = 0
            for (sequence, count) in zip(sequences, counts) {
                held[sequence] += new[row..<row + count]
                if count > 0 {
                    try assertClose(
                        try out[row..<row + count], try attended(try q[row..<row + count], over: held[sequence]),
                        "\(sequences) of \(counts), rows from \(row)")
                }
                row += count
            }
            XCTAssertEqual(try (0..<3).map(cache.nextPosition(ofSequence:)), held.map(\.count))
        }
    }

    func testMismatchedListsAreRefused() throws {
        let cache = try makeCache(sequences: 2)
        let three = try tensor(someTokens(3).map(\.key))
        let out = try zeros(3)
        for (sequences, counts, what, got) in [
            ([0, 1], [3], "row counts do not match", "1 row count"),
            ([0, 1], [], "row counts do not match", "0 row counts"),
            ([0, 1], [4, -1], "a row count is out of range", "-1"), ([0, 1], nil, "rows do not match", "3 rows"),
            ([], nil, "the step has no sequence", "an empty list of sequences"),
            ([], [], "the step has no sequence", "an empty list of sequences"),
            ([0, -1], [1, 2], "the sequence is not in the cache", "sequence -1"),
        ] as [([Int], [Int]?, String, String)] {
            assertRefused(op: "AttentionCache.append", what: what, got: got) {
                try device.encode {
                    try $0.append(keys: three, values: three, to: cache, sequences: sequences, rowCounts: counts)
                }
            }
            assertRefused(op: "AttentionCache.attend", what: what, got: got) {
                try device.encode {
                    try $0.attend(queries(3), over: cache, sequences: sequences, rowCounts: counts, into: out)
                }
            }
        }
        // An empty list selects no sequence, not the first one.
        let none = try tensor([])
        try device.encode { step in
            try step.append(keys: none, values: none, to: cache, sequences: [])
            try step.append(keys: none, values: none, to: cache, sequences: [], rowCounts: [])
        }.wait()
        XCTAssertEqual(try (0..<2).map(cache.nextPosition(ofSequence:)), [0, 0])
    }

    /// Rotates in the dispatch that stores the keys, with the results of rotating queries and keys before.
    func testAppendAndAttendRotates() throws {
        let tokens = someTokens(3)
        let (q, keys, values) = try (queries(3), tensor(tokens.map(\.key)), tensor(tokens.map(\.value)))
        let embedding = RotaryEmbedding(layout: .mrope(8, 4, 4), base: 1000)
        let steps: [(MultiRoPE.Positions?, MultiRoPE.Offsets?)] = [
            (nil, nil), (.text(startingAt: 70), [3]), (.perToken([5, 1, 9]), nil),
            (.perAxis([[1, 2, 3], [4, 5, 6], [9, 8, 7]]), .list([-1])),
        ]
        for (positions, offsets) in steps {
            for storage in [AttentionCache.Storage.dense(.float16), .quantized(.turbo, keys: .bits4, values: .bits4)] {
                let (fused, apart, listed) = try (makeCache(storage), makeCache(storage), makeCache(storage))
                let (out, expected, listedOut) = try (zeros(3), zeros(3), zeros(3))
                let rotary = RotaryStep(embedding, positions: positions, offsets: offsets)
                let done = try device.encode {
                    try $0.appendAndAttend(
                        queries: q, keys: keys, values: values, rotary: rotary, over: fused, into: out)
                }
                XCTAssertEqual(done.summary.counts(ofKind: "RotaryAppend").dispatches, 1)
                XCTAssertLessThanOrEqual(done.summary.total.dispatches, 3)
                try device.encode {
                    try $0.appendAndAttend(
                        queries: q, keys: keys, values: values, rotary: rotary, over: listed, sequences: [0],
                        rowCounts: [3], into: listedOut)
                }
                let rotatedQueries = try Tensor.zeros(shape: q.shape, on: device)
                let rotatedKeys = try Tensor.zeros(shape: keys.shape, on: device)
                try device.encode { step in
                    try step.encode(
                        MultiRoPE(
                            HeadsView(q), HeadsView(keys), intoQueries: HeadsView(rotatedQueries),
                            intoKeys: HeadsView(rotatedKeys), positions: positions ?? .text(startingAt: 0),
                            offsets: offsets, with: embedding))
                    try step.appendAndAttend(
                        queries: rotatedQueries, keys: rotatedKeys, values: values, over: apart, into: expected)
                }
                XCTAssertEqual(try out.array(of: Float.self), try expected.array(of: Float.self))
                XCTAssertEqual(try listedOut.array(of: Float.self), try expected.array(of: Float.self))
                XCTAssertEqual(try fused.nextPosition, 3)
            }
        }
    }

    func testGrownAndCopiedSequencesContinue() throws {
        for storage in [AttentionCache.Storage.dense(.float16), .quantized(.turbo, keys: .bits8, values: .bits8)] {
            let cache = try makeCache(storage, capacity: 4, sequences: 3, whenFull: .fail)
            let (prompt, own) = (someTokens(4), someTokens(2))
            try append(prompt, to: cache, sequence: 0)
            let q = try queries(1)
            let outputs = try (0..<3).map { _ in try zeros(1) }
            var grown: AttentionCache?
            try device.encode { step in
                let larger = try step.grow(cache, toCapacity: 6)
                try step.copy(sequence: 0, of: cache, to: 1, of: larger)
                try step.copy(sequence: 1, to: 2, in: larger)
                for (sequence, output) in outputs.enumerated() {
                    try step.append(
                        keys: tensor(own.map(\.key)), values: tensor(own.map(\.value)), to: larger, sequence: sequence)
                    try step.attend(q, over: larger, into: output, sequence: sequence)
                }
                XCTAssertEqual(try larger.nextPosition(ofSequence: 0), 0)
                grown = larger
            }
            for output in outputs {
                try assertClose(output, try attended(q, over: prompt + own), accuracy: 0.02, "\(storage)")
            }
            let larger = try XCTUnwrap(grown)
            XCTAssertEqual(larger.dimensions.capacity, 6)
            XCTAssertEqual(try (0..<3).map(larger.nextPosition(ofSequence:)), [6, 6, 6])
            XCTAssertEqual(try (0..<3).map(cache.nextPosition(ofSequence:)), [4, 0, 0])
            assertRefused(op: "AttentionCache.grown", got: "-1") {
                try device.encode { _ = try $0.grow(cache, toCapacity: -1) }
            }
            for (source, target) in [(0, 3), (-1, 0), (0, -1)] {
                assertRefused(op: "AttentionCache.copy") {
                    try device.encode { try $0.copy(sequence: source, of: cache, to: target, of: larger) }
                }
            }
        }
    }
}
