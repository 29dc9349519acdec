import MLXNativeKernels
import XCTest

/// Steps that are recorded once and run again.
final class RecordedStepTests: DeviceTestCase {
    private func makeCache(capacity: Int = 64) throws -> AttentionCache {
        try AttentionCache(.init(kvHeads: 2, headDim: 64, capacity: capacity), on: device)
    }

    /// Positions that follow a cache are those of fresh steps with its next position, also after a rollback.
    func testRunsEqualFreshSteps() throws {
        let caches = [try makeCache(), try makeCache()]
        let results = try caches.map { _ in try Tensor.zeros(shape: [1, 2, 64], dtype: .float16, on: device) }
        let queries = try tokens(0..<1, heads: 2, headDim: 64)
        let keys = try tokens(1..<2, heads: 2, headDim: 64)
        let rotated = try (0..<2).map { _ in try Tensor.zeros(shape: [1, 2, 64], dtype: .float16, on: device) }
        func encode(_ step: KernelEncoder, _ layer: Int, positions: MultiRoPE.Positions) throws {
            try step.encode(
                MultiRoPE(
                    HeadsView(queries), HeadsView(keys), intoQueries: HeadsView(rotated[0]),
                    intoKeys: HeadsView(rotated[1]), positions: positions, offsets: [3], with: RotaryEmbedding()))
            try step.append(keys: rotated[1], values: keys, to: caches[layer])
            try step.attend(rotated[0], over: caches[layer], into: results[layer])
        }
        let step = try device.record(label: "token") { try encode($0, 0, positions: .next(of: caches[0])) }
        XCTAssertEqual(try caches[0].nextPosition, 0)
        XCTAssertEqual(step.summary.counts(ofKind: "FlashDecode").dispatches, 1)
        for token in 0..<20 {
            if token == 9 { for cache in caches { try cache.truncate(to: 4) } }
            if token == 14 { for cache in caches { cache.reset() } }
            let done = try step.run()
            try device.encode { try encode($0, 1, positions: .text(startingAt: try caches[1].nextPosition)) }.wait()
            try done.wait()
            XCTAssertEqual(done.summary.total.dispatches, step.summary.total.dispatches)
            XCTAssertEqual(try results[0].bytes(), try results[1].bytes(), "token \(token)")
        }
        XCTAssertEqual(try caches.map { (cache) throws in try cache.nextPosition }, [6, 6])
        XCTAssertEqual(try caches[0].keys.bytes(), try caches[1].keys.bytes())
    }

    /// One list serves the rotation and the append.
    func testPositionsFollowListedSequences() throws {
        let caches = try (0..<3).map { _ in
            try AttentionCache(.init(kvHeads: 2, headDim: 64, capacity: 32, sequences: 3), on: device)
        }
        let (sequences, counts) = ([2, 0, 2], [2, 1, 1])
        let keys = try tokens(1..<5, heads: 2, headDim: 64)
        let rotated = try Tensor.zeros(shape: [4, 2, 64], dtype: .float16, on: device)
        let output = try Tensor.zeros(shape: [4, 2, 64], dtype: .float16, on: device)
        func encode(_ step: KernelEncoder, _ cache: AttentionCache, _ positions: MultiRoPE.Positions) throws {
            try step.encode(
                MultiRoPE(
                    HeadsView(keys), intoQueries: HeadsView(rotated), positions: positions, with: RotaryEmbedding()))
            try step.append(keys: rotated, values: keys, to: cache, sequences: sequences, rowCounts: counts)
        }
        let step = try device.record {
            try encode($0, caches[0], .next(of: caches[0], sequences: sequences, rowCounts: counts))
        }
        let fused = try device.record { step in
            let positions = MultiRoPE.Positions.next(of: caches[2], sequences: sequences, rowCounts: counts)
            try step.appendAndAttend(
                queries: keys, keys: keys, values: keys, rotary: .init(RotaryEmbedding(), positions: positions),
                over: caches[2], sequences: sequences, rowCounts: counts, into: output)
        }
        for run in 0..<4 {
            if run == 2 { for cache in caches { try cache.truncate(to: 1, sequence: 2) } }
            try step.run()
            try fused.run()
            let starts = try (0..<3).map(caches[1].nextPosition(ofSequence:))
            let listed = [starts[2], starts[2] + 1, starts[0], starts[2] + 2]
            try device.encode { try encode($0, caches[1], .perToken(listed)) }
            XCTAssertEqual(try caches[0].keys.bytes(), try caches[1].keys.bytes(), "run \(run)")
            XCTAssertEqual(try caches[2].keys.bytes(), try caches[1].keys.bytes(), "run \(run)")
        }
        try caches[0].reset(sequence: 2)
        XCTAssertEqual(try (0..<3).map(caches[0].nextPosition(ofSequence:)), [4, 0, 0])
    }

    func testTokensRotatedByTheNextPositionsAreAppended() throws {
        let cache = try makeCache()
        let token = try tokens(0..<1, heads: 2, headDim: 64)
        let before = try token.bytes()
        func rotate(_ step: KernelEncoder, _ positions: MultiRoPE.Positions) throws {
            try step.rotate(token, positions: positions, with: RotaryEmbedding())
        }
        let bodies: [(KernelEncoder) throws -> Void] = [
            { try rotate($0, .next(of: cache)) },
            { step in
                try step.append(keys: token, values: token, to: cache)
                try rotate(step, .next(of: cache))
            },
        ]
        for body in bodies {
            assertRefused(op: "AttentionCache", what: "does not append them") { try device.encode(body) }
            assertRefused(op: "AttentionCache", what: "does not append them") { try device.record(body) }
        }
        let wrongs: [(MultiRoPE.Positions, String)] = [
            (.next(of: cache, sequences: []), "the step has no sequence"),
            (.next(of: cache, sequences: [Int(UInt32.max)]), "the sequence is not in the cache"),
            (.next(of: cache, rowCounts: []), "row counts do not match"),
            (.next(of: cache, sequences: [0], rowCounts: [1, 1]), "row counts do not match"),
            (.next(of: cache, rowCounts: [2]), "rows do not match"),
        ]
        for (positions, what) in wrongs {
            assertRefused(what: what) {
                try device.encode { step in
                    try rotate(step, positions)
                    try step.append(keys: token, values: token, to: cache)
                }
            }
        }
        XCTAssertEqual(try cache.nextPosition, 0)
        XCTAssertEqual(try token.bytes(), before)
        let op = MultiRoPE(HeadsView(token), positions: .next(of: cache), with: RotaryEmbedding())
        assertRefused(op: "MultiRoPE", what: "a plan cannot follow a cache") { _ = try op.plan() }
    }

    func testAThrowingClosureRecordsNothing() throws {
        XCTAssertThrowsError(try device.record { _ in throw Abandoned() }) { XCTAssert($0 is Abandoned) }
        var escaped: KernelEncoder?
        _ = try device.record { escaped = $0 }
        assertRefused { try escaped?.barrier() }
    }

    func testStepsAndPlansJoinOtherWork() throws {
        let cache = try makeCache()
        let token = try tokens(0..<1, heads: 2, headDim: 64)
        let append = try device.record { try $0.append(keys: token, values: token, to: cache) }
        let twice = try device.record { step in
            try step.encode(append)
            try step.encode(append)
        }
        let into = try Tensor.zeros(shape: [1, 2, 64], dtype: .float16, on: device)
        let plan = try Hadamard(token, into: into).plan()
        let done = try device.encode { step in
            try step.encode(twice)
            try step.encode(plan)
        }
        try done.wait()
        XCTAssertEqual(done.summary.counts(ofKind: "Hadamard").dispatches, 1)
        XCTAssertEqual(try cache.nextPosition, 2)
    }
}
