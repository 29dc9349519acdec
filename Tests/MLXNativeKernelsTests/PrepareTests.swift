import Foundation
import MLXNativeKernels
import XCTest

/// Measures only on separate Host devices, so that the device shared by all tests keeps the choices of the table.
final class PrepareTests: AttentionTestCase {
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

    private func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    /// A cache with enough slots to be measured.
    private func measuredCache(on device: KernelDevice) throws -> AttentionCache {
        try AttentionCache(.init(kvHeads: kvHeads, headDim: headDim, capacity: 256), on: device)
    }

    func testStepsWorkAfterPreparing() async throws {
        for storage in [AttentionCache.Storage.dense(.float32), .quantized(.turbo, keys: .bits8, values: .bits8)] {
            let cache = try makeCache(storage)
            let rotary = RotaryEmbedding(frequencyFactors: [Float](repeating: 2, count: headDim / 2))
            // A mask selects other kernels.
            let options = AttentionOptions(scale: 0.25, mask: try Tensor.zeros(shape: [1, 64], on: device))
            let ready = try await device.prepare(
                for: [cache, makeCache()], queryHeads: heads, rows: 5, dtype: .float32, options: options, rotary: rotary
            )
            XCTAssertGreaterThanOrEqual(ready.kernels, 3, "\(storage)")
            XCTAssertEqual([ready.measured, ready.known], [0, 0])
            XCTAssertFalse(ready.isKept)
            XCTAssertGreaterThan(ready.seconds, 0)
            XCTAssertTrue(
                ready.description.hasPrefix("\(ready.kernels) kernels, 0 shapes measured, 0 known, "), "\(ready)")
            XCTAssertEqual(try cache.nextPosition, 0)

            let tokens = someTokens(5)
            let q = try queries(5)
            let out = try zeros(5)
            try append(tokens, to: cache)
            try await device.run { try $0.attend(q, over: cache, into: out, options) }
            try assertClose(
                out, try attended(q, over: tokens, scale: 0.25), accuracy: storage == .dense(.float32) ? 2e-5 : 0.02,
                "\(storage)")
        }
    }

    func testMeasuredChoicesAreReused() async throws {
        let file = path("tuning")
        for isFirst in [true, false] {
            let host = try KernelDevice.host()
            let cache = try measuredCache(on: host)
            let ready = try await host.prepare(
                for: [cache], queryHeads: heads, rows: 4, tuning: .measure, tuningFile: file)
            XCTAssertEqual([ready.measured, ready.known], isFirst ? [2, 0] : [0, 2], "\(ready)")
            XCTAssertTrue(ready.isKept)
            XCTAssertTrue(FileManager.default.fileExists(atPath: file))
            let again = try await host.prepare(
                for: [cache], queryHeads: heads, rows: 4, tuning: .measure, tuningFile: file)
            XCTAssertEqual([again.measured, again.known], [0, 2], "\(again)")
        }
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: folder.path), ["tuning"])
    }

    func testNoCachesNeedNothing() async throws {
        let ready = try await device.prepare(for: [])
        XCTAssertEqual(ready.kernels, 0)
    }

    /// A single thread for tasks is enough: the call does not occupy the pool that tasks share.
    func testManyTasksPrepareAtTheSameTime() async throws {
        let host = try KernelDevice.host()
        let cache = try measuredCache(on: host)
        let file = path("tuning")
        let shapes = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<16 {
                group.addTask {
                    let ready = try await host.prepare(for: [cache], tuning: .measure, tuningFile: file)
                    return ready.measured
                }
            }
            return try await group.reduce(0, +)
        }
        XCTAssertEqual(shapes, 1)
    }

    /// What C cannot see; C++ tests cover its own rules.
    func testInvalidPreparationsAreRefused() async throws {
        let cache = try makeCache()
        let file = path("tuning")
        func assertRefused(
            queryHeads: Int? = nil, rows: Int = 1, options: AttentionOptions = .init(), rotary: RotaryEmbedding? = nil,
            file: String? = nil, what: String, got: String, line: UInt = #line
        ) async {
            do {
                try await device.prepare(
                    for: [cache], queryHeads: queryHeads, rows: rows, options: options, rotary: rotary, tuningFile: file
                )
                XCTFail("prepared", line: line)
            } catch {
                XCTAssertEqual(error.op, "prepare", line: line)
                XCTAssert(error.what.contains(what) && error.got.contains(got), "\(error)", line: line)
            }
        }
        await assertRefused(rows: 0, what: "the rows do not fit a cache", got: "0 rows")
        await assertRefused(rows: -1, what: "rows is out of range", got: "-1")
        await assertRefused(queryHeads: -1, what: "queryHeads is out of range", got: "-1")
        await assertRefused(options: .init(window: -1), what: "window is out of range", got: "-1")
        await assertRefused(rotary: .init(ropeDim: -1), what: "ropeDim is out of range", got: "-1")
        await assertRefused(file: file + "\0", what: "the path names no file", got: "a zero")
        await assertRefused(file: "", what: "the path names no file", got: "an empty path")
        XCTAssertFalse(FileManager.default.fileExists(atPath: file))
    }
}
