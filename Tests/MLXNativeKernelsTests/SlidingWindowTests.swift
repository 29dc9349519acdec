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
        assertRefused(op: "AttentionCache", what: "sees nothing", got: "a window of 0") {
            try makeCache(SlidingWindow(window: 0))
        }
        for (window, name) in [
            (SlidingWindow(window: -1), "window"), (SlidingWindow(window: 1, maxRows: -1), "maxRows"),
            (SlidingWindow(window: 1, maxDraft: -1), "maxDraft"),
        ] {
            assertRefused(op: "AttentionCache", what: "\(name) is out of range", got: "-1") { try makeCache(window) }
        }
        assertRefused(op: "AttentionCache", what: "keepingFirst is out of range", got: "-1") {
            try makeCache(SlidingWindow(window: 1), keepingFirst: -1)
        }
        assertRefused(op: "AttentionCache", what: "too small for the sliding window", got: "9", expected: "at least 10")
        {
            try makeCache(SlidingWindow(window: 8, maxRows: 3), capacity: 9)
        }
        // An omitted capacity is 0.
        assertRefused(op: "AttentionCache", what: "would hold nothing", got: "capacity 0") {
            try AttentionCache(.init(kvHeads: 1, headDim: 64), on: device)
        }
    }

    /// Drafts of four tokens: each row sees its window, and after a truncation later rows see the earlier positions.
    func testDraftsAreExactAfterTruncation() throws {
        let cache = try makeCache(SlidingWindow(window: 8, maxRows: 4, maxDraft: 4))
        var tokens: [Token] = []
        for accepted in [4, 4, 4, 1, 0, 3, 2, 0, 4, 1] {
            let draft = someTokens(4)
            let q = try queries(4)
            let out = try zeros(4)
            try device.encode { step in
                try step.append(keys: tensor(draft.map(\.key)), values: tensor(draft.map(\.value)), to: cache)
                try step.attend(q, over: cache, into: out)  // with the cache's window
            }
            try assertClose(out, try attended(q, over: tokens + draft, window: 8), "at \(tokens.count)")
            tokens += draft[..<accepted]
            try cache.truncate(to: tokens.count)
        }
        XCTAssertEqual(try cache.nextPosition, 23)
    }

    func testRowsCanSeePinnedPositions() throws {
        let cache = try makeCache(SlidingWindow(window: 5, maxRows: 2), keepingFirst: 3)
        let tokens = someTokens(20)
        let q = try queries(2)
        let out = try zeros(2)
        try append(tokens, to: cache)
        for seesPinned in [false, true] {
            try device.encode { try $0.attend(q, over: cache, into: out, .init(windowSeesPinned: seesPinned)) }
            try assertClose(out, try attended(q, over: tokens, window: 5, seesFirst: seesPinned ? 3 : 0))
        }
        // A smaller window for these rows, and one that is too large.
        try device.encode { try $0.attend(q, over: cache, into: out, .init(window: 2)) }
        try assertClose(out, try attended(q, over: tokens, window: 2))
        assertRefused(op: "AttentionCache.attend", what: "overwritten", got: "window of 6") {
            try device.encode { try $0.attend(q, over: cache, into: out, .init(window: 6)) }
        }
    }

    func testPromptsTakeOneCall() throws {
        let cache = try makeCache(SlidingWindow(window: 5, maxRows: 3))
        let tokens = someTokens(40)
        let q = try queries(40)
        let out = try zeros(40)
        let done = try device.encode {
            try $0.appendAndAttend(
                queries: q, keys: tensor(tokens.map(\.key)), values: tensor(tokens.map(\.value)), over: cache, into: out
            )
        }
        try assertClose(out, try attended(q, over: tokens, window: 5))
        // In chunks of several tokens, not one by one.
        XCTAssertLessThan(done.summary.counts(ofKind: "KVCacheWrite").dispatches, 40)
    }

    func testLongRollbacksAndManyChunksAreNamed() throws {
        let cache = try makeCache(SlidingWindow(window: 4, maxRows: 1, maxDraft: 2))
        let tokens = someTokens(20)
        let q = try queries(20)
        let out = try zeros(20)
        let done = try device.encode {
            try $0.appendAndAttend(
                queries: q, keys: tensor(tokens.map(\.key)), values: tensor(tokens.map(\.value)), over: cache, into: out
            )
        }
        XCTAssert("\(done.summary)".contains("divided 20 tokens into "), "\(done.summary)")
        XCTAssert("\(done.summary)".contains("more than 1 maxRows"), "\(done.summary)")
        assertRefused(op: "AttentionCache", what: "the rollback is too long", got: "a rollback of 3 tokens") {
            try cache.truncate(to: 17)
        }
        try cache.truncate(to: 18)
    }
}
