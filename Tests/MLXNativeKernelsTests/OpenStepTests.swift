import MLXNativeKernels
import XCTest

/// The order of calls within a step: a step uses its tensors when it runs, so that its closure can neither write them
/// nor read its results, and a token is appended before it attends.
final class OpenStepTests: AttentionTestCase {
    /// Runs the closure as a step, then as a recording.
    private func refusedInSteps(
        op: String = "", what: String, got: String = "", line: UInt = #line, _ body: (KernelEncoder) throws -> Void
    ) {
        assertRefused(op: op, what: what, got: got, line: line) { try device.encode(body) }
        assertRefused(op: op, what: what, got: got, line: line) { try device.record(body) }
    }

    func testWritingWhatAnOpenStepReadsThrows() throws {
        let (first, second) = (try makeCache(), try makeCache())
        let tokens = someTokens(2)
        let token = try tensor([tokens[0].key])
        let writes: [(Tensor) throws -> Void] = [
            { try $0.write(tokens[1].key) }, { try $0.write(bytes: [UInt8](repeating: 1, count: $0.byteCount)) },
            { try $0[0..<1].write(tokens[1].key) }, { try $0.reshaped([1, 2 * 64]).write(tokens[1].key) },
        ]
        for write in writes {
            refusedInSteps(op: "Buffer", what: "an open step uses this memory", got: "a write") { step in
                try step.append(keys: token, values: token, to: first)
                try write(token)
                try step.append(keys: token, values: token, to: second)
            }
        }
        XCTAssertEqual(try [first.nextPosition, second.nextPosition], [0, 0])
        XCTAssertEqual(try token.array(of: Float.self), tokens[0].key)

        // Before and after a step, and inside it if the error is caught, the tensor is what was written last.
        for (cache, write) in [(first, tokens[0].key), (second, tokens[1].key)] {
            try token.write(write)
            try device.encode { step in
                try step.append(keys: token, values: token, to: cache)
                assertRefused { try token.write(numbers(write.count)) }
            }
        }
        for (cache, expected) in [(first, tokens[0].key), (second, tokens[1].key)] {
            let stored = try cache.keys.array(of: Float.self)
            XCTAssertEqual((0..<kvHeads).flatMap { stored[$0 * 64 * headDim..<($0 * 64 + 1) * headDim] }, expected)
        }
    }

    func testReadingWhatAnOpenStepWritesThrows() throws {
        let (cache, other) = (try makeCache(), try makeCache())
        let tokens = someTokens(1)
        try append(tokens, to: other)
        let (keys, values) = (try tensor(tokens.map(\.key)), try tensor(tokens.map(\.value)))
        let (q, out) = (try queries(1), try zeros(1))
        let reads: [() throws -> Void] = [
            { _ = try out.array(of: Float.self) }, { _ = try out.bytes() }, { _ = try cache.keys.bytes() },
        ]
        for read in reads {
            refusedInSteps(op: "Buffer", what: "an open step writes this memory", got: "a read") { step in
                try step.append(keys: keys, values: values, to: cache)
                try step.attend(q, over: cache, into: out)
                try read()
            }
        }
        XCTAssertEqual(try cache.nextPosition, 0)
        XCTAssertEqual(try out.array(of: Float.self), [Float](repeating: 0, count: out.count))

        let step = try device.record { step in
            try step.append(keys: keys, values: values, to: cache)
            try step.attend(q, over: cache, into: out)
            // What the step only reads can be read; what it does not use can also be written.
            XCTAssertEqual(try keys.array(of: Float.self), tokens[0].key)
            XCTAssertEqual(try other.values.array(of: Float.self)[0], tokens[0].value[0])
            try other.keys[0..<1].write(bytes: other.keys.bytes())
            try zeros(1).write(numbers(heads * headDim))
        }
        try keys.write(tokens[0].key)
        try step.run()
        try assertClose(out, try attended(q, over: tokens))
    }

    /// Other parts of a tensor are other memory.
    func testRowsThatNoCallUsesCanBeWritten() throws {
        let cache = try makeCache()
        let tokens = someTokens(2)
        let rows = try tensor([tokens[0].key, tokens[0].key])
        try device.encode { step in
            try step.append(keys: rows[0..<1], values: rows[0..<1], to: cache)
            try rows[1..<2].write(tokens[1].key)
            try step.append(keys: rows[1..<2], values: rows[1..<2], to: cache)
        }
        let stored = try cache.keys.array(of: Float.self)
        XCTAssertEqual(Array(stored[..<(2 * headDim)]), (0..<2).flatMap { tokens[$0].key[..<headDim] })
    }

    func testSavingInAStepWritesTheStateBeforeIt() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("mnk-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let cache = try makeCache()
        let tokens = someTokens(2)
        try append([tokens[0]], to: cache)
        let before = try cache.keys.bytes()
        try device.encode { step in
            try step.append(keys: tensor([tokens[1].key]), values: tensor([tokens[1].value]), to: cache)
            try cache.save(to: path)
        }
        let loaded = try AttentionCache(contentsOf: path, atMost: cache.byteCount, on: device)
        XCTAssertEqual(try loaded.nextPosition, 1)
        XCTAssertEqual(try loaded.keys.bytes(), before)
    }

    func testAttentionNeedsTokens() throws {
        let cache = try makeCache(sequences: 2)
        let (q, out) = (try queries(1), try zeros(1))
        try append(someTokens(3), to: cache, sequence: 0)
        try append(someTokens(1), to: cache, sequence: 1)
        try cache.truncate(to: 0, sequence: 1)
        let attends: [(KernelEncoder) throws -> Void] = [
            { try $0.attend(q, over: cache, into: out, sequence: 1) },
            { try $0.attend(q, over: cache, into: out, .init(isCausal: false), sequence: 1) },
            {
                try $0.attend(
                    q, over: cache, sequences: [1], after: [CachePrefix(cache, sequence: 0)], into: out)
            },
            { try $0.attend(self.queries(2), over: cache, sequences: [0, 1], into: self.zeros(2)) },
            { try $0.attend(q, over: cache, sequences: [0, 1], rowCounts: [0, 1], into: out) },
        ]
        for attend in attends {
            refusedInSteps(op: "AttentionCache.attend", what: "fewer positions than queries", got: "sequence 1", attend)
        }
        // A sequence without rows may be empty.
        try device.encode { try $0.attend(q, over: cache, sequences: [1, 0], rowCounts: [0, 1], into: out) }
    }

    func testTokensAreAppendedBeforeTheyAttend() throws {
        let cache = try makeCache(sequences: 2)
        var held = [someTokens(2), someTokens(3)]
        for sequence in 0..<2 { try append(held[sequence], to: cache, sequence: sequence) }
        let new = someTokens(2)
        let (keys, values) = (try tensor(new.map(\.key)), try tensor(new.map(\.value)))
        let q = try queries(2)
        func add(_ row: Int, to sequence: Int, _ step: KernelEncoder) throws {
            let row = row..<row + 1
            try step.append(keys: keys[row], values: values[row], to: cache, sequence: sequence)
        }
        let wrong = "causal attention of this step has already read the sequence"
        refusedInSteps(op: "AttentionCache.append", what: wrong, got: "sequence 1") { step in
            try step.attend(q[0..<1], over: cache, into: zeros(1), sequence: 1)
            try add(0, to: 1, step)
        }
        refusedInSteps(op: "AttentionCache.append", what: wrong, got: "sequence 0") { step in
            try step.attend(q, over: cache, sequences: [1, 0], into: zeros(2))
            try step.append(keys: keys, values: values, to: cache, sequences: [0, 1])
        }
        refusedInSteps(op: "AttentionCache.appendAndAttend", what: wrong, got: "sequence 1") { step in
            try step.attend(q[0..<1], over: cache, into: zeros(1), sequence: 1)
            try step.appendAndAttend(queries: q, keys: keys, values: values, over: cache, into: zeros(2), sequence: 1)
        }
        XCTAssertEqual(try (0..<2).map(cache.nextPosition(ofSequence:)), [2, 3])

        // Token by token in one step; and an append after attention over another sequence, or not causal.
        let out = try zeros(2)
        try device.encode { step in
            for row in 0..<2 {
                try add(row, to: 1, step)
                try step.attend(q[row..<row + 1], over: cache, into: out[row..<row + 1], sequence: 1)
            }
            try step.attend(q[0..<1], over: cache, into: zeros(1), .init(isCausal: false), sequence: 0)
            try add(0, to: 0, step)
        }
        held[1] += new
        try assertClose(out, try attended(q, over: held[1]))
        try device.encode { step in
            try step.attend(q[0..<1], over: cache, into: zeros(1), sequence: 1)
            try add(1, to: 0, step)
        }
        XCTAssertEqual(try (0..<2).map(cache.nextPosition(ofSequence:)), [4, 5])
    }
}
