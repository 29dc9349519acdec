import MLXNativeKernels
import XCTest

/// Types that conform to Sendable are safe to use from several threads.
final class ThreadTests: DeviceTestCase {
    func testThreadsUseTheirOwnCachesOfOneDevice() throws {
        let device = try XCTUnwrap(self.device)
        let failures = Counter()
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            do {
                let cache = try AttentionCache(
                    .init(kvHeads: 1, headDim: 4, capacity: 8), storage: .dense(.float32), whenFull: .overwriteOldest,
                    isStorageOnly: true, on: device)
                for position in 0..<20 {
                    let token = try Tensor(
                        [Float](repeating: Float(thread * 100 + position), count: 4), shape: [1, 4], on: device)
                    try device.encode { try $0.append(keys: token, values: token, to: cache) }.wait()
                }
                let stored = try cache.keys.array(of: Float.self)
                for position in 12..<20 where stored[position % 8 * 4] != Float(thread * 100 + position) {
                    failures.increment()
                }
            } catch {
                failures.increment()
            }
        }
        XCTAssertEqual(failures.value, 0)
    }

    func testThreadsAppendToSequencesOfOneCache() async throws {
        let device = try XCTUnwrap(self.device)
        let cache = try AttentionCache(
            .init(kvHeads: 1, headDim: 4, capacity: 64, sequences: 6), isStorageOnly: true, on: device)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for sequence in 0..<6 {
                group.addTask {
                    for _ in 0...sequence {
                        let token = try Tensor([1, 2, 3, 4], shape: [1, 4], on: device)
                        let done = try device.encode {
                            try $0.append(keys: token, values: token, to: cache, sequence: sequence)
                        }
                        _ = try await done.finished
                    }
                }
            }
            try await group.waitForAll()
        }
        XCTAssertEqual(try (0..<6).map(cache.count(ofSequence:)), [1, 2, 3, 4, 5, 6])
    }

    func testObjectsMayBeReleasedOnAnyThread() throws {
        let device = try XCTUnwrap(self.device)
        let released = Counter()
        DispatchQueue.concurrentPerform(iterations: 16) { _ in
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 16384, alignment: 16384)
            nonisolated(unsafe) let owned = memory
            let tensor = try? Tensor.wrapping(memory, shape: [64], dtype: .float32, on: device) {
                owned.deallocate()
                released.increment()
            }
            let slice = try? tensor?[0..<8]
            DispatchQueue.global().async { _ = slice }
        }
        let all = expectation(for: NSPredicate { _, _ in released.value == 16 }, evaluatedWith: nil)
        wait(for: [all], timeout: 60)
    }
}
