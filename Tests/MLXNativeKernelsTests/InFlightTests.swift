import MLXNativeKernels
import XCTest

#if SWIFT_PACKAGE
    import MLXNativeKernelsCore
#endif

/// Reading, writing and saving while work is in flight.
final class InFlightTests: DeviceTestCase {
    private var library: KernelLibrary!

    override func setUpWithError() throws {
        try super.setUpWithError()
        library = try KernelLibrary(text: TestKernels.text, label: "test kernels", on: device)
    }

    override func tearDown() {
        library = nil
        super.tearDown()
    }

    /// Work of about half a second, which makes every element odd.
    @discardableResult
    private func encodeSlowly(_ tensor: Tensor, rounds: UInt32 = 200_000_000) throws -> Completion {
        try device.encode { try slow(tensor, rounds, $0) }
    }

    private func slow(_ tensor: Tensor, _ rounds: UInt32, _ step: KernelEncoder) throws {
        try step.dispatch(
            "slow", in: library, buffers: [.readWrite(tensor, at: 0)], inline: [.value(rounds, at: 1)],
            threads: GridSize(tensor.count))
    }

    private func counters() throws -> Tensor { try Tensor.zeros(shape: [2], dtype: .uint32, on: device) }

    func testReadingWaitsForTheWorkThatWrites() throws {
        let (written, other) = try (counters(), counters())
        let done = try encodeSlowly(written)
        XCTAssertEqual(try other.array(of: UInt32.self), [0, 0])  // does not wait
        XCTAssertFalse(done.isDone)
        XCTAssert(try written.array(of: UInt32.self).allSatisfy { $0 % 2 == 1 })

        let floats = try Tensor((0..<100).map(Float.init), on: device)
        let results = try Tensor.zeros(shape: [100], on: device)
        for round in 1...20 {
            try device.encode { step in
                try step.dispatch(
                    "scale", in: library, buffers: [.read(floats, at: 0), .write(results, at: 1)],
                    inline: [.value(Float(round), at: 2)], threads: GridSize(100))
            }
            XCTAssertEqual(try results.array(of: Float.self), (0..<100).map { Float($0 * round) })
        }
    }

    func testWritingWaitsForTheWorkThatReads() throws {
        let tensor = try counters()
        try encodeSlowly(tensor)
        try tensor.write([8, 6] as [UInt32])
        XCTAssertEqual(try tensor.array(of: UInt32.self), [8, 6])
        let again = try encodeSlowly(tensor, rounds: 1)
        try tensor.write(bytes: [UInt8](repeating: 0, count: 8))
        try again.wait()
        XCTAssertEqual(try tensor.bytes(), [UInt8](repeating: 0, count: 8))
    }

    func testSavingWaitsForTheWorkThatAppends() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("mnk-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let cache = try AttentionCache(.init(kvHeads: 2, headDim: 32, capacity: 64), on: device)
        let tokens = try tokens(0..<4, heads: 2, headDim: 32)
        for round in 1...6 {
            let pause = try counters()
            try device.encode { step in
                try slow(pause, 20_000_000, step)
                try step.append(keys: tokens, values: tokens, to: cache)
            }
            if round % 2 == 0 { try cache.save(to: path) } else { try await cache.saveWhenFinished(to: path) }
            let loaded = try AttentionCache(contentsOf: path, atMost: cache.bytes, on: device)
            XCTAssertEqual(loaded.nextPosition, 4 * round)
            XCTAssertEqual(try loaded.keys.bytes(), try cache.keys.bytes())
        }
        do {
            try await cache.saveWhenFinished(to: path + "/x")
            XCTFail("the file was saved")
        } catch {
            XCTAssertEqual(error.what.contains("no file can be made"), true, "\(error)")
        }
    }

    /// More tasks wait than there are threads for tasks, and none holds one.
    func testTasksSuspendWhileTheyWait() async throws {
        let tensor = try counters()
        let done = try encodeSlowly(tensor)
        let started = Counter()
        try await withThrowingTaskGroup(of: [UInt32].self) { group in
            for _ in 0..<4 * ProcessInfo.processInfo.activeProcessorCount {
                group.addTask {
                    started.increment()
                    return try await tensor.arrayWhenFinished(of: UInt32.self)
                }
            }
            while started.value < 4 * ProcessInfo.processInfo.activeProcessorCount {
                try await Task.sleep(nanoseconds: 1_000_000)
            }
            XCTAssertFalse(done.isDone, "tasks waited for threads")
            for try await elements in group { XCTAssert(elements.allSatisfy { $0 % 2 == 1 }) }
        }
        let halves = try Tensor([1, 2.5], dtype: .float16, on: device)
        let floats = try await halves.arrayWhenFinished(of: Float.self)
        XCTAssertEqual(floats, [1, 2.5])
        do {
            _ = try await halves.arrayWhenFinished(of: UInt32.self)
            XCTFail("halves were read as integers")
        } catch {
            XCTAssertEqual(error.code, .invalidArgument)
        }
    }

    func testRunAwaitsTheWork() async throws {
        let tensor = try counters()
        let summary = try await device.run(label: "a run") { try slow(tensor, 1000, $0) }
        XCTAssertEqual(summary.total.dispatches, 1)
        XCTAssertGreaterThan(summary.deviceSeconds, 0)
        XCTAssert(try tensor.array(of: UInt32.self).allSatisfy { $0 % 2 == 1 })

        let untouched = try counters()
        do {
            try await device.run { step in
                try slow(untouched, 1, step)
                throw Abandoned()
            }
            XCTFail("the closure's error is lost")
        } catch {
            XCTAssert(error is Abandoned)
        }
        XCTAssertEqual(try untouched.array(of: UInt32.self), [0, 0])
    }

    @MainActor
    func testRunRecordsOnTheActorOfItsCaller() async throws {
        let tensor = try counters()
        var recorded = 0  // isolated to the main actor
        try await device.run { step in
            MainActor.assertIsolated()
            recorded += 1
            try slow(tensor, 1, step)
        }
        XCTAssertEqual(recorded, 1)
    }

    /// Failed work is known to the device, to those who read what it was to write, and to work that would read it.
    func testFailuresReachReadersUntilTheMemoryIsWritten() async throws {
        let host = try KernelDevice.host()
        XCTAssertNil(host.lastFailure)
        let library = try KernelLibrary(text: TestKernels.text, label: "test kernels", on: host)
        let x = try Tensor.zeros(shape: [64], on: host)
        let y = try Tensor.zeros(shape: [64], on: host)
        func fail(_ step: KernelEncoder) throws {
            try step.dispatch(
                "divergentBarrier", in: library, buffers: [.write(x, at: 0)], threadgroups: GridSize(1),
                threadsPerThreadgroup: GridSize(64))
        }
        func copy(_ step: KernelEncoder) throws {
            try step.dispatch(
                "scale", in: library, buffers: [.read(x, at: 0), .write(y, at: 1)], inline: [.value(Float(1), at: 2)],
                threads: GridSize(64))
        }
        do {
            try await host.run(label: "failing", fail)
            XCTFail("the work succeeded")
        } catch let error as KernelError {
            XCTAssertEqual(error.code, .deviceFault)
            XCTAssertEqual(host.lastFailure, error)
        }
        assertRefused(.deviceFault) { try x.array(of: Float.self) }
        assertRefused(.deviceFault) { try x.bytes() }
        assertRefused(.deviceFault) { try host.encode(copy).wait() }
        do {
            _ = try await x.arrayWhenFinished(of: Float.self)
            XCTFail("failed memory was read")
        } catch {
            XCTAssertEqual(error.code, .deviceFault)
        }
        try x.write([Float](repeating: 2, count: 64))
        try await host.run(copy)
        XCTAssertEqual(try y.array(of: Float.self)[63], 2)
        XCTAssertNotNil(host.lastFailure)
    }

    #if SWIFT_PACKAGE
        /// Swift has no handlers of finished work, but shares the device's thread with those of the other languages.
        func testWaitingThatCouldNeverEndIsAnError() throws {
            final class Handler: @unchecked Sendable {
                var tensor: Tensor?
                var done: Completion?
                var errors: [KernelError] = []
                let finished = XCTestExpectation()

                func run() {
                    do throws(KernelError) { _ = try tensor?.bytes() } catch { errors.append(error) }
                    do throws(KernelError) { try done?.wait() } catch { errors.append(error) }
                    finished.fulfill()
                }
            }
            let handler = Handler()
            let (first, second) = try (counters(), counters())
            try encodeSlowly(first)

            var failure: OpaquePointer?
            let plain = try XCTUnwrap(mnk_device_make_default(&failure))  // the same device
            defer { mnk_device_release(plain) }
            let encoder = try XCTUnwrap(mnk_encoder_make(plain, "handled", &failure))
            defer { mnk_encoder_release(encoder) }
            let context = Unmanaged.passUnretained(handler).toOpaque()
            let completion = mnk_encoder_commit(
                encoder,
                { context, _ in
                    if let context { Unmanaged<Handler>.fromOpaque(context).takeUnretainedValue().run() }
                }, context, &failure)
            defer { mnk_completion_release(completion) }
            handler.tensor = second
            handler.done = try encodeSlowly(second)

            wait(for: [handler.finished], timeout: 60)
            XCTAssertEqual(handler.errors.map(\.code), [.wouldDeadlock, .wouldDeadlock])
            XCTAssert(try second.array(of: UInt32.self).allSatisfy { $0 % 2 == 1 })
        }
    #endif
}
