import MLXNativeKernels
import XCTest

final class CacheFileTests: DeviceTestCase {
    private var folder: URL!

    override func setUpWithError() throws {
        try super.setUpWithError()
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("mnk-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    override func tearDown() {
        try? FileManager.default.removeItem(at: folder)
        super.tearDown()
    }

    private var path: String { folder.appendingPathComponent("cache").path }

    private func append(_ positions: Range<Int>, to caches: [AttentionCache]) throws {
        let keys = try tokens(positions, heads: 2, headDim: caches[0].dimensions.headDim)
        try device.encode { step in
            for cache in caches { try step.append(keys: keys, values: keys, to: cache, sequence: 1) }
        }.wait()
    }

    private func assertSame(_ got: AttentionCache, _ expected: AttentionCache, line: UInt = #line) throws {
        XCTAssertEqual(got.dimensions, expected.dimensions, line: line)
        XCTAssertEqual(got.storage, expected.storage, line: line)
        XCTAssertEqual(got.whenFull, expected.whenFull, line: line)
        XCTAssertEqual(got.slidingWindow, expected.slidingWindow, line: line)
        XCTAssertEqual(got.isStorageOnly, expected.isStorageOnly, line: line)
        XCTAssertEqual(try got.nextPosition(ofSequence: 1), try expected.nextPosition(ofSequence: 1), line: line)
        XCTAssertEqual(try got.count(ofSequence: 1), try expected.count(ofSequence: 1), line: line)
        let tensors: [KeyPath<AttentionCache, Tensor?>] = [
            \.keyScales, \.valueScales, \.calibration.keyMeans, \.calibration.valueMeans,
            \.calibration.keyChannelScales,
        ]
        XCTAssertEqual(try got.keys.bytes(), try expected.keys.bytes(), line: line)
        XCTAssertEqual(try got.values.bytes(), try expected.values.bytes(), line: line)
        for tensor in tensors {
            XCTAssertEqual(try got[keyPath: tensor]?.bytes(), try expected[keyPath: tensor]?.bytes(), line: line)
        }
    }

    func testSavedCachesContinueWhereTheyWere() throws {
        let means = try Tensor([Float](repeating: 2, count: 64), shape: [2, 32], on: device)
        let storages: [(Int, AttentionCache.Storage, AttentionCache.Calibration)] = [
            (32, .dense(.bfloat16), .init()),
            (32, .quantized(.mlx1, keys: .bits4, values: .bits4), .init()),
            (256, .quantized(.mlx1Affine4, keys: .bits4, values: .bits4), .init()),
            (256, .quantizedValues(.mlx1Unrotated, .bits8, keys: .float16), .init()),
            (
                32,
                .quantized(
                    .turbo, keys: .bits6, values: .bits2,
                    options: .init(
                        candidates: .seventeen, keyScale: .leastSquares, valueScale: .unbiased, nonFinite: .propagate)),
                .init(keyMeans: means, valueMeans: means, keyChannelScales: means)
            ),
        ]
        for (headDim, storage, calibration) in storages {
            let cache = try AttentionCache(
                .init(kvHeads: 2, headDim: headDim, capacity: 4, sequences: 2), storage: storage,
                calibration: calibration,
                whenFull: .overwriteOldest(keepingFirst: 1), on: device)
            try append(0..<6, to: [cache])
            try cache.save(to: path)
            let loaded = try AttentionCache(contentsOf: path, atMost: cache.byteCount, on: device)
            try assertSame(loaded, cache)
            try append(6..<8, to: [cache, loaded])
            try assertSame(loaded, cache)
        }
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: folder.path), ["cache"])
    }

    func testURLsAndTasksSaveAndLoad() async throws {
        let cache = try AttentionCache(.init(kvHeads: 2, headDim: 32, capacity: 4, sequences: 2), on: device)
        try append(0..<3, to: [cache])
        let url = folder.appendingPathComponent("a cache %41")
        try cache.save(to: url)
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: folder.path), ["a cache %41"])
        try assertSame(AttentionCache(contentsOf: url, atMost: cache.byteCount, on: device), cache)
        try assertSame(try await AttentionCache.load(contentsOf: url, atMost: cache.byteCount, on: device), cache)
        try await cache.saveWhenFinished(to: url)
        try assertSame(try await AttentionCache.load(contentsOf: url.path, atMost: cache.byteCount, on: device), cache)
        let remote = try XCTUnwrap(URL(string: "https://example.com/cache"))
        assertRefused(op: "AttentionCache", what: "the URL names no file", got: "https://example.com/cache") {
            try cache.save(to: remote)
        }
        assertRefused(op: "AttentionCache", what: "the URL names no file") {
            try AttentionCache(contentsOf: remote, atMost: .max, on: device)
        }
    }

    func testSavedCachesKeepTheirWindowAndStorageOnly() throws {
        let window = try AttentionCache(
            .init(kvHeads: 2, headDim: 32, sequences: 2), slidingWindow: .init(window: 3, maxRows: 4, maxDraft: 4),
            keepingFirst: 1, on: device)
        let storage = try AttentionCache(
            .init(kvHeads: 2, headDim: 32, capacity: 4, sequences: 2, valueHeadDim: 3), isStorageOnly: true, on: device)
        try append(0..<9, to: [window])
        for cache in [window, storage] {
            try cache.save(to: path)
            try assertSame(AttentionCache(contentsOf: path, atMost: cache.byteCount, on: device), cache)
        }
        // The file stores the window and the capacity, so the limits are the most that these allow.
        let single = try AttentionCache(
            .init(kvHeads: 2, headDim: 32, capacity: 9), slidingWindow: .init(window: 4, maxRows: 1), on: device)
        try single.save(to: path)
        let loaded = try AttentionCache(contentsOf: path, atMost: single.byteCount, on: device)
        XCTAssertEqual(loaded.slidingWindow, SlidingWindow(window: 4, maxRows: 6, maxDraft: 6))
    }

    /// C++ tests cover damaged files.
    func testArgumentsOfLoadingReachTheCore() throws {
        assertRefused(op: "AttentionCache", what: "there is no such file", got: "cache") {
            try AttentionCache(contentsOf: path, atMost: .max, on: device)
        }
        let cache = try AttentionCache(
            .init(kvHeads: 2, headDim: 32, capacity: 4, sequences: 2), whenFull: .overwriteOldest, on: device)
        try append(0..<6, to: [cache])
        try cache.save(to: path)
        let larger = try AttentionCache(contentsOf: path, atMost: 2 * cache.byteCount, capacity: 8, on: device)
        XCTAssertEqual(larger.dimensions.capacity, 8)
        XCTAssertEqual(try larger.nextPosition(ofSequence: 1), 6)
        XCTAssertEqual(try larger.count(ofSequence: 1), 4)
        for (limit, capacity, what) in [
            (cache.byteCount - 1, nil, "larger than allowed"), (-1, nil, "out of range"),
            (.max, 3, "too small for the file"), (.max, 0, "would hold nothing"), (.max, -1, "out of range"),
        ] as [(Int, Int?, String)] {
            assertRefused(op: "AttentionCache", what: what) {
                try AttentionCache(contentsOf: path, atMost: limit, capacity: capacity, on: device)
            }
        }
        assertRefused(op: "AttentionCache", what: "the path names no file") { try cache.save(to: path + "\0x") }
    }
}
