import MLXNativeKernels
import XCTest

/// When work runs and when caches advance.
final class EncodeTests: DeviceTestCase {
    private func makeCache(whenFull: AttentionCache.WhenFull = .overwriteOldest) throws -> AttentionCache {
        try AttentionCache(
            .init(kvHeads: 2, headDim: 4, capacity: 4), whenFull: whenFull, isStorageOnly: true, on: device)
    }

    func testAppendAdvancesOnlyAfterTheClosure() throws {
        let cache = try makeCache()
        let tokens = try tokens(0..<3, heads: 2, headDim: 4)
        let done = try device.encode { step in
            try step.append(keys: tokens, values: tokens, to: cache)
            XCTAssertEqual(try cache.nextPosition, 0)
            try step.append(keys: tokens[0..<1], values: tokens[0..<1], to: cache)
            XCTAssertEqual(try cache.nextPosition, 0)
        }
        XCTAssertEqual(try cache.nextPosition, 4)
        XCTAssertEqual(try cache.count, 4)
        try done.wait()
        XCTAssertEqual(try cache.nextPosition, 4)
    }

    func testThrowingClosureRunsNothingAndAdvancesNothing() throws {
        let cache = try makeCache()
        let tokens = try tokens(0..<2, heads: 2, headDim: 4)
        let before = try cache.keys.bytes()
        XCTAssertThrowsError(
            try device.encode { step in
                try step.append(keys: tokens, values: tokens, to: cache)
                throw Abandoned()
            }
        ) { XCTAssert($0 is Abandoned) }
        XCTAssertEqual(try cache.nextPosition, 0)
        XCTAssertFalse(cache.isSuspect)

        // Submissions run in order, so an abandoned one would have run before this one finishes.
        try device.encode { _ in }.wait()
        XCTAssertEqual(try cache.keys.bytes(), before)
    }

    func testStepUsedAfterItsClosureIsAnError() throws {
        let cache = try makeCache()
        let tokens = try tokens(0..<1, heads: 2, headDim: 4)
        var escaped: KernelEncoder?
        try device.encode { escaped = $0 }.wait()
        let step = try XCTUnwrap(escaped)
        assertRefused(op: "KernelEncoder", what: "ended") { try step.barrier() }
        assertRefused(op: "KernelEncoder", what: "ended") {
            try step.append(keys: tokens, values: tokens, to: cache)
        }
        XCTAssertThrowsError(
            try device.encode { abandoned in
                escaped = abandoned
                throw Abandoned()
            })
        assertRefused(op: "KernelEncoder", what: "ended") { try escaped?.barrier() }
    }

    func testStepThatLosesARaceForACacheIsRefused() throws {
        let cache = try makeCache()
        let tokens = try tokens(0..<1, heads: 2, headDim: 4)
        let error = assertRefused(op: "AttentionCache") {
            try device.encode { outer in
                try outer.append(keys: tokens, values: tokens, to: cache)
                try device.encode { inner in try inner.append(keys: tokens, values: tokens, to: cache) }
            }
        }
        XCTAssertEqual(error?.isRetryable, true)
        XCTAssertEqual(try cache.nextPosition, 1)
    }

    func testSummaryCountsBytesAndBarriers() throws {
        let cache = try makeCache()
        let tokens = try tokens(0..<1, heads: 2, headDim: 4)
        let done = try device.encode { step in
            try step.append(keys: tokens, values: tokens, to: cache)  // slots 0 and 1: other bytes, no barrier
            try step.append(keys: tokens, values: tokens, to: cache)
            try step.barrier()
            try step.append(keys: tokens, values: tokens, to: cache)
        }
        try done.wait()
        let summary = done.summary
        XCTAssertEqual(summary.total.dispatches, 3)
        XCTAssertEqual(summary.barriers, 1)
        XCTAssertEqual(summary.total.bytesWritten, 3 * 2 * 2 * 4 * 2)
        XCTAssertEqual(summary.total.bytesRead, 3 * 2 * 2 * 4 * 2)
        XCTAssertGreaterThan(summary.deviceSeconds, 0)
        XCTAssertEqual(summary.counts(ofKind: "KVCacheWrite"), summary.total)
        XCTAssertEqual(summary.counts(ofKind: "unheard of").dispatches, 0)
        XCTAssert(
            "\(summary)".hasPrefix("3 dispatches, 1 barrier, 96 bytes read, 96 bytes written, "), "\(summary)")
    }

    func testSummaryHasOpTimesIfMeasured() throws {
        let cache = try AttentionCache(.init(kvHeads: 2, headDim: 32, capacity: 8), on: device)
        let tokens = try tokens(0..<1, heads: 2, headDim: 32)
        let queries = try Tensor.zeros(shape: [2, 32], dtype: .float16, on: device)
        let output = try Tensor.zeros(shape: [2, 32], dtype: .float16, on: device)
        for measures in [false, true] {
            let done = try device.encode { step in
                try step.append(keys: tokens, values: tokens, to: cache)
                try step.attend(queries, over: cache, into: output)
                if measures { try step.measureOps() }
            }
            try done.wait()
            let summary = done.summary
            XCTAssertEqual(summary.kinds.keys.sorted(), ["FlashDecode", "KVCacheWrite"])
            let isKnown = summary.total.deviceSeconds > 0
            XCTAssert(summary.kinds.values.allSatisfy { ($0.deviceSeconds > 0) == isKnown })
            XCTAssert(measures || !isKnown)
            for (kind, counts) in summary.kinds { XCTAssertEqual(summary.counts(ofKind: kind), counts) }
            XCTAssertEqual(
                summary.total.deviceSeconds, summary.kinds.values.reduce(0) { $0 + $1.deviceSeconds }, accuracy: 1e-12)
            // A GPU may be unable to measure, and its clocks are not compared.
            guard device.kind == .host else { continue }
            XCTAssertEqual(isKnown, measures)
            XCTAssertLessThanOrEqual(summary.total.deviceSeconds, summary.deviceSeconds)
        }
    }
}
