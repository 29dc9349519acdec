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

    /// Lists of rows are limited, but a prompt of one sequence is not a list.
    func testAPromptOfOneSequenceIsOneDispatch() throws {
        let cache = try makeCache(.dense(.float16), capacity: 2000)
        let prompt = try Tensor.zeros(shape: [1500, kvHeads, headDim], on: device)
        let done = try device.encode { try $0.append(keys: prompt, values: prompt, to: cache) }
        XCTAssertEqual(done.summary.total.dispatches, 1)
        XCTAssertEqual(try cache.nextPosition, 1500)
    }

    func testATensorIsTokenMajor() throws {
        let tensor = try Tensor.zeros(shape: [2, 3, 4], on: device)
        XCTAssertEqual(tensor.headsView.layout, .tokenMajor)
        XCTAssertNil(tensor.headsView.strides)
        XCTAssertEqual(tensor.headMajor.layout, .headMajor)
        XCTAssertEqual(tensor.headMajor.headsView.layout, .headMajor)
        // Two heads of three tokens; read as token-major, the tensor has three heads, but the cache has two.
        let cache = try AttentionCache(
            .init(kvHeads: 2, headDim: 4, capacity: 4), isStorageOnly: true, on: device)
        assertRefused(op: "AttentionCache.append", got: "3") {
            try device.encode { try $0.append(keys: tensor, values: tensor, to: cache) }
        }
        try device.encode { try $0.append(keys: tensor.headMajor, values: tensor.headMajor, to: cache) }
        XCTAssertEqual(try cache.nextPosition, 3)
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
        func refused(
            _ sequences: [Int], _ counts: [Int]?, what: String = "", got: String = "", line: UInt = #line
        ) {
            assertRefused(op: "AttentionCache.append", what: what, got: got, line: line) {
                try device.encode {
                    try $0.append(keys: three, values: three, to: cache, sequences: sequences, rowCounts: counts)
                }
            }
            assertRefused(op: "AttentionCache.attend", what: what, got: got, line: line) {
                try device.encode {
                    try $0.attend(queries(3), over: cache, sequences: sequences, rowCounts: counts, into: out)
                }
            }
        }
        refused([0, 1], [3], what: "row counts do not match", got: "1 row count")
        refused([0, 1], [], what: "row counts do not match", got: "0 row counts")
        refused([0, 1], [4, -1], what: "a row count is out of range", got: "-1")
        refused([0, 1], [1, 1], what: "rows do not match", got: "3 rows")
        refused([0, 1], nil, what: "rows do not match", got: "3 rows")
        refused([], nil, what: "the step has no sequence", got: "an empty list of sequences")
        refused([], [], what: "the step has no sequence", got: "an empty list of sequences")
        refused([0, 2], [1, 2], got: "sequence 2")
        refused([0, -1], [1, 2], what: "the sequence is not in the cache", got: "sequence -1")
        XCTAssertEqual(try (0..<2).map(cache.nextPosition(ofSequence:)), [0, 0])
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

    func testCopiedSequencesAreIndependent() throws {
        for storage in [AttentionCache.Storage.dense(.float16), .quantized(.turbo, keys: .bits8, values: .bits8)] {
            let cache = try makeCache(storage, capacity: 8, sequences: 3)
            let prompt = someTokens(5)
            try append(prompt, to: cache, sequence: 0)
            try append(someTokens(7), to: cache, sequence: 2)
            let own = someTokens(1)
            let q = try queries(1)
            let out = try zeros(1)
            try device.encode { step in
                try step.copy(sequence: 0, to: 2, in: cache)
                try step.append(
                    keys: tensor(own.map(\.key)), values: tensor(own.map(\.value)), to: cache, sequence: 2)
                try step.attend(q, over: cache, into: out, sequence: 2)
            }
            try assertClose(out, try attended(q, over: prompt + own), accuracy: 0.02, "\(storage)")
            XCTAssertEqual(try (0..<3).map(cache.nextPosition(ofSequence:)), [5, 0, 6])
            try device.encode { try $0.attend(q, over: cache, into: out, sequence: 0) }
            try assertClose(out, try attended(q, over: prompt), accuracy: 0.02, "\(storage), the source")
            for (source, target) in [(0, 3), (3, 0), (-1, 0), (0, -1)] {
                assertRefused(op: "AttentionCache.copy") {
                    try device.encode { try $0.copy(sequence: source, to: target, in: cache) }
                }
            }
        }
    }

    func testGrownCachesContinue() throws {
        for storage in [AttentionCache.Storage.dense(.float16), .quantized(.turbo, keys: .bits8, values: .bits8)] {
            let cache = try makeCache(storage, capacity: 4, sequences: 2, whenFull: .fail)
            let prompt = someTokens(4)
            try append(prompt, to: cache, sequence: 0)
            let own = someTokens(2)
            let q = try queries(1)
            let (out, copied) = (try zeros(1), try zeros(1))
            let (keys, values) = (try tensor(own.map(\.key)), try tensor(own.map(\.value)))
            assertRefused(what: "past the end") {
                try device.encode { try $0.append(keys: keys, values: values, to: cache, sequence: 0) }
            }
            var grown: AttentionCache?
            try device.encode { step in
                let larger = try step.grow(cache, toCapacity: 6)
                try step.copy(sequence: 0, of: cache, to: 1, of: larger)
                for (sequence, result) in [(0, out), (1, copied)] {
                    try step.append(keys: keys, values: values, to: larger, sequence: sequence)
                    try step.attend(q, over: larger, into: result, sequence: sequence)
                }
                XCTAssertEqual(try larger.nextPosition(ofSequence: 0), 0)
                grown = larger
            }
            for result in [out, copied] {
                try assertClose(result, try attended(q, over: prompt + own), accuracy: 0.02, "\(storage)")
            }
            let larger = try XCTUnwrap(grown)
            XCTAssertEqual(larger.dimensions.capacity, 6)
            XCTAssertEqual(try (0..<2).map(larger.nextPosition(ofSequence:)), [6, 6])
            XCTAssertEqual(try (0..<2).map(cache.nextPosition(ofSequence:)), [4, 0])
            for capacity in [3, -1] {
                assertRefused(op: "AttentionCache.grown", got: "\(capacity)") {
                    try device.encode { _ = try $0.grow(cache, toCapacity: capacity) }
                }
            }
            let other = try makeCache(.dense(.float32), capacity: 4, sequences: 2)
            assertRefused(op: "AttentionCache.copy", what: "differ in shape or storage") {
                try device.encode { try $0.copy(sequence: 0, of: cache, to: 0, of: other) }
            }
            for (source, target) in [(0, 2), (2, 0), (-1, 0), (0, -1)] {
                assertRefused(op: "AttentionCache.copy") {
                    try device.encode { try $0.copy(sequence: source, of: cache, to: target, of: larger) }
                }
            }
        }
    }
}
