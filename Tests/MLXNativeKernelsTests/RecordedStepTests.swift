import MLXNativeKernels
import XCTest

/// Steps that are recorded once and run again.
final class RecordedStepTests: DeviceTestCase {
    private func makeCache(capacity: Int = 64) throws -> AttentionCache {
        try AttentionCache(.init(kvHeads: 2, headDim: 64, capacity: capacity), on: device)
    }

    func testRunsEqualFreshSteps() throws {
        let caches = [try makeCache(), try makeCache()]
        let results = try caches.map { _ in try Tensor.zeros(shape: [1, 2, 64], dtype: .float16, on: device) }
        let queries = try tokens(0..<1, heads: 2, headDim: 64)
        let keys = try tokens(1..<2, heads: 2, headDim: 64)
        let rotated = try Tensor.zeros(shape: [1, 2, 64], dtype: .float16, on: device)
        func encode(_ step: KernelEncoder, _ layer: Int, position: Int) throws {
            try step.encode(
                MultiRoPE(
                    HeadsView(queries), intoQueries: HeadsView(rotated), positions: .text(startingAt: position),
                    with: RotaryEmbedding()))
            try step.append(keys: keys, values: keys, to: caches[layer])
            try step.attend(rotated, over: caches[layer], into: results[layer])
        }
        let step = try device.record(label: "token") { try encode($0, 0, position: 3) }
        XCTAssertEqual(caches[0].nextPosition, 0)
        XCTAssertEqual(step.summary.counts(ofKind: "FlashDecode").dispatches, 1)
        for token in 0..<20 {
            let done = try step.run()
            try device.encode { try encode($0, 1, position: 3 + token) }.wait()
            try done.wait()
            XCTAssertEqual(done.summary.total.dispatches, step.summary.total.dispatches)
            XCTAssertEqual(try results[0].bytes(), try results[1].bytes())
        }
        XCTAssertEqual(step.runs, 20)
        XCTAssertEqual(try caches[0].keys.bytes(), try caches[1].keys.bytes())
    }

    func testThrowsBeforeRunningWhenTheCacheIsFull() throws {
        let cache = try makeCache(capacity: 2)
        let other = try makeCache(capacity: 4)
        let token = try tokens(0..<1, heads: 2, headDim: 64)
        let step = try device.record { step in
            try step.append(keys: token, values: token, to: other)
            try step.append(keys: token, values: token, to: cache)
        }
        try step.run()
        try step.run()
        assertRefused { try step.run() }
        XCTAssertEqual(other.nextPosition, 2)
        try cache.truncate(to: 1)
        step.runs = 1
        try step.run().wait()
        XCTAssertEqual(step.runs, 2)
        XCTAssertEqual(other.nextPosition, 3)
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
        XCTAssertEqual(cache.nextPosition, 2)
        XCTAssertEqual(append.runs, 2)
    }
}
