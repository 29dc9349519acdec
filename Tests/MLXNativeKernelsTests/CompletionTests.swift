import MLXNativeKernels
import XCTest

final class CompletionTests: DeviceTestCase {
    private func submit(to cache: AttentionCache) throws -> Completion {
        let tokens = try tokens(0..<4, heads: 2, headDim: 64)
        return try device.encode { try $0.append(keys: tokens, values: tokens, to: cache) }
    }

    private func makeCache() throws -> AttentionCache {
        try AttentionCache(.init(kvHeads: 2, headDim: 64, capacity: 16), whenFull: .overwriteOldest, on: device)
    }

    func testFinishedReturnsTheSummary() async throws {
        let done = try submit(to: makeCache())
        let summary = try await done.finished
        XCTAssert(done.isDone)
        XCTAssertEqual(summary.total.dispatches, 1)
        XCTAssertGreaterThan(summary.deviceSeconds, 0)
    }

    func testManyTasksAwaitTheSameWork() async throws {
        let cache = try makeCache()
        for _ in 0..<20 {
            let done = try submit(to: cache)
            let dispatches = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<8 { group.addTask { try await done.finished.total.dispatches } }
                return try await group.reduce(0, +)
            }
            XCTAssertEqual(dispatches, 8)
            _ = try await done.finished  // once more, after completion
            try done.wait()
        }
    }

    func testWaitMayBeRepeatedFromManyThreads() throws {
        let done = try submit(to: makeCache())
        let failures = Counter()
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            do { try done.wait() } catch { failures.increment() }
            if !done.isDone { failures.increment() }
        }
        XCTAssertEqual(failures.value, 0)
    }

    func testWorkRunsWithoutAWaiter() throws {
        let cache = try makeCache()
        for _ in 0..<50 { _ = try submit(to: cache) }
        try device.encode { _ in }.wait()
        XCTAssertEqual(try cache.nextPosition, 200)
        XCTAssertEqual(try cache.keys.array(of: Float.self)[64], number(position: 1, head: 0, element: 0))
    }

    func testFailureReachesEveryWaiterAndMarksTheCache() async throws {
        let host = try KernelDevice.host()
        let library = try KernelLibrary(text: TestKernels.text, label: "test kernels", on: host)
        let cache = try AttentionCache(
            .init(kvHeads: 1, headDim: 4, capacity: 8, sequences: 2), isStorageOnly: true, on: host)
        let token = try Tensor.zeros(shape: [1, 4], on: host)
        try host.encode { try $0.append(keys: token, values: token, to: cache, sequence: 0) }.wait()

        let scratch = try Tensor.zeros(shape: [64], on: host)
        let done = try host.encode { step in
            try step.append(keys: token, values: token, to: cache, sequence: 0)
            try step.dispatch(
                "divergentBarrier", in: library, buffers: [.write(scratch, at: 0)], threadgroups: GridSize(1),
                threadsPerThreadgroup: GridSize(64))
        }
        for _ in 0..<2 {
            do {
                _ = try await done.finished
                XCTFail("the step succeeded")
            } catch {
                assertRefused(.deviceFault) { throw error }
            }
            assertRefused(.deviceFault) { try done.wait() }
        }
        XCTAssert(done.isDone)

        XCTAssert(cache.isSuspect)
        XCTAssert(try cache.isSuspect(sequence: 0))
        XCTAssertFalse(try cache.isSuspect(sequence: 1))
        assertRefused(op: "AttentionCache", what: "suspect") {
            try host.encode { try $0.append(keys: token, values: token, to: cache, sequence: 0) }
        }
        try cache.truncate(to: 1, sequence: 0)
        XCTAssertFalse(cache.isSuspect)
        try host.encode { try $0.append(keys: token, values: token, to: cache, sequence: 0) }.wait()
        XCTAssertEqual(try cache.nextPosition(ofSequence: 0), 2)
    }
}
