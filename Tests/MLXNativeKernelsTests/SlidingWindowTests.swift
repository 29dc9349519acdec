import MLXNativeKernels
import XCTest

final class SlidingWindowTests: AttentionTestCase {
    private func makeCache(
        _ window: SlidingWindow, keepingFirst pinned: Int = 0, capacity: Int? = nil
    ) throws -> AttentionCache {
        let dimensions =
            capacity.map { AttentionCache.Dimensions(kvHeads: kvHeads, headDim: headDim, capacity: $0) }
            ?? AttentionCache.Dimensions(kvHeads: kvHeads, headDim: headDim)
        return try AttentionCache(
            dimensions, slidingWindow: window, keepingFirst: pinned, storage: .dense(.float32), on: device)
    }

    func testCachesComputeTheirCapacity() throws {
        for (window, pinned, capacity) in [
            (SlidingWindow(window: 8), 0, 71), (SlidingWindow(window: 8, maxRows: 4), 0, 11),
            (SlidingWindow(window: 8, maxRows: 2, maxDraft: 5), 3, 15), (SlidingWindow(window: 1, maxRows: 0), 0, 64),
            (SlidingWindow(window: 1, maxRows: 1), 0, 1),
        ] {
            let cache = try makeCache(window, keepingFirst: pinned)
            XCTAssertEqual(cache.dimensions.capacity, capacity)
            XCTAssertEqual(cache.whenFull, .overwriteOldest(keepingFirst: pinned))
            XCTAssertEqual(cache.slidingWindow?.window, window.window)
            XCTAssertEqual(cache.slidingWindow?.maxRows, window.maxRows == 0 ? 64 : window.maxRows)
            XCTAssertEqual(cache.slidingWindow?.maxDraft, window.maxDraft)
        }
        let larger = try makeCache(SlidingWindow(window: 8), capacity: 80)
        XCTAssertEqual(larger.dimensions.capacity, 80)
        XCTAssertEqual(larger.slidingWindow, SlidingWindow(window: 8))
        XCTAssertNil(try makeCache().slidingWindow)
        let several = try AttentionCache(
            .init(kvHeads: 2, headDim: 32, sequences: 3, valueHeadDim: 64), slidingWindow: .init(window: 4), on: device)
        XCTAssertEqual(several.keys.shape, [3, 2, 67, 32])
        XCTAssertEqual(several.values.shape, [3, 2, 67, 64])
    }

    func testUnservableWindowsAreRefused() throws {
        for (window, name) in [
            (SlidingWindow(window: -1), "window"), (SlidingWindow(window: 1, maxRows: -1), "maxRows"),
            (SlidingWindow(window: 1, maxDraft: -1), "maxDraft"),
        ] {
            assertRefused(op: "AttentionCache", what: "\(name) is out of range", got: "-1") { try makeCache(window) }
        }
        assertRefused(op: "AttentionCache", what: "keepingFirst is out of range", got: "-1") {
            try makeCache(SlidingWindow(window: 1), keepingFirst: -1)
        }
        // An omitted capacity is 0.
        assertRefused(op: "AttentionCache", what: "would hold nothing", got: "capacity 0") {
            try AttentionCache(.init(kvHeads: 1, headDim: 64), on: device)
        }
    }
}
