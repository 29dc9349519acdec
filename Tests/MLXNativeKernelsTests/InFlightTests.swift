import MLXNativeKernels
import XCTest

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

    private func element() throws -> Tensor { try Tensor.zeros(shape: [1], dtype: .uint32, on: device) }

    func testReadingWaitsForWriters() throws {
        let gate = try Gate(in: library, on: device)
        let (written, other) = try (element(), element())
        let done = try device.encode { try gate.pass(written, $0) }
        XCTAssertEqual(try other.array(of: UInt32.self), [0])  // does not wait
        XCTAssertFalse(done.isDone)
        gate.openSoon()
        XCTAssertEqual(try written.array(of: UInt32.self), [1])

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

    func testWritingWaitsForReadersAndWriters() throws {
        for bytes in [[8, 0, 0, 0], [9, 0, 0, 0]] as [[UInt8]] {
            let gate = try Gate(in: library, on: device)
            let tensor = try element()
            let done = try device.encode { try gate.pass(tensor, $0) }
            gate.openSoon()
            if bytes[0] == 8 { try tensor.write([8] as [UInt32]) } else { try tensor.write(bytes: bytes) }
            try done.wait()
            XCTAssertEqual(try tensor.bytes(), bytes)
        }
    }

    func testSavingWaitsForAppends() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("mnk-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let cache = try AttentionCache(.init(kvHeads: 2, headDim: 32, capacity: 64), on: device)
        let tokens = try tokens(0..<4, heads: 2, headDim: 32)
        for round in 1...4 {
            let gate = try Gate(in: library, on: device)
            try device.encode { step in
                try gate.pass(element(), step)
                try step.append(keys: tokens, values: tokens, to: cache)
            }
            gate.openSoon()
            if round % 2 == 0 { try cache.save(to: path) } else { try await cache.saveWhenFinished(to: path) }
            let loaded = try AttentionCache(contentsOf: path, atMost: cache.byteCount, on: device)
            XCTAssertEqual(try loaded.nextPosition, 4 * round)
            XCTAssertEqual(try loaded.keys.bytes(), try cache.keys.bytes())
        }
        do {
            try await cache.saveWhenFinished(to: path + "/x")
            XCTFail("the file was saved")
        } catch {
            XCTAssert(error.what.contains("no file can be made"), "\(error)")
        }
    }

    /// More tasks wait than there are threads in the pool; a waiting task must not block a thread.
    func testTasksSuspendWhileTheyWait() async throws {
        let gate = try Gate(in: library, on: device)
        let tensor = try element()
        let done = try device.encode { try gate.pass(tensor, $0) }
        let started = Counter()
        let tasks = 4 * ProcessInfo.processInfo.activeProcessorCount
        try await withThrowingTaskGroup(of: [UInt32].self) { group in
            for _ in 0..<tasks {
                group.addTask {
                    started.increment()
                    return try await tensor.arrayWhenFinished(of: UInt32.self)
                }
            }
            while started.value < tasks { try await Task.sleep(nanoseconds: 1_000_000) }
            XCTAssertFalse(done.isDone, "tasks waited for threads")
            gate.open()
            for try await elements in group { XCTAssertEqual(elements, [1]) }
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
        let gate = try Gate(in: library, on: device)
        gate.open()
        let tensor = try element()
        let summary = try await device.run(label: "a run") { try gate.pass(tensor, $0) }
        XCTAssertEqual(summary.total.dispatches, 1)
        XCTAssertGreaterThan(summary.deviceSeconds, 0)
        XCTAssertEqual(try tensor.array(of: UInt32.self), [1])

        let untouched = try element()
        do {
            try await device.run { step in
                try gate.pass(untouched, step)
                throw Abandoned()
            }
            XCTFail("the closure's error is lost")
        } catch {
            XCTAssert(error is Abandoned)
        }
        XCTAssertEqual(try untouched.array(of: UInt32.self), [0])
    }

    @MainActor
    func testRunRecordsOnTheCallersActor() async throws {
        var recorded = 0  // isolated to the main actor
        try await device.run { step in
            MainActor.assertIsolated()
            recorded += 1
            try step.barrier()
        }
        XCTAssertEqual(recorded, 1)
    }

    /// The device, readers of the failed outputs, and work that would read them report the failure.
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
}
