import MLXNativeKernels
import XCTest

/// User kernels in the same steps as the library's ops.
final class CustomKernelTests: DeviceTestCase {
    private var library: KernelLibrary!

    override func setUpWithError() throws {
        try super.setUpWithError()
        library = try KernelLibrary(text: TestKernels.text, label: "test kernels", on: device)
    }

    override func tearDown() {
        library = nil
        super.tearDown()
    }

    func testAChangedFileIsReadAgainAfterClearing() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).metal").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        func names(of kernel: String) throws -> [String] {
            let text = "kernel void \(kernel)(device uint* x [[buffer(0)]]) { x[0] = 1; }\nexport_kernel(\(kernel))\n"
            try text.write(toFile: path, atomically: true, encoding: .utf8)
            return try KernelLibrary(path: path, on: device).functionNames
        }
        XCTAssertEqual(try names(of: "first"), ["first"])
        XCTAssertEqual(try names(of: "second"), ["first"])
        device.clearKernels()
        XCTAssertEqual(try names(of: "second"), ["second"])
    }

    func testShippedLibraryContainsTheOps() throws {
        let names = try KernelLibrary.shipped(on: device).functionNames
        XCTAssert(names.contains { $0.hasPrefix("kvCache") }, "\(names)")
    }

    func testBarriersFollowAKernelsBuffers() throws {
        let x = try Tensor((0..<100).map(Float.init), on: device)
        let y = try Tensor.zeros(shape: [100], on: device)
        let z = try Tensor.zeros(shape: [100], on: device)
        let other = try Tensor.zeros(shape: [100], on: device)
        let cache = try AttentionCache(
            .init(kvHeads: 1, headDim: 100, capacity: 2), storage: .dense(.float32), isStorageOnly: true, on: device)
        let done = try device.encode(label: "scaling") { step in
            try scale(x, y, by: 2, step)
            try scale(x, other, by: 5, step)  // no dependency
            try scale(y, z, by: 10, step)  // reads the first dispatch's output
            try step.append(keys: z.reshaped([1, 100]), values: other.reshaped([1, 100]), to: cache)
        }
        try done.wait()
        XCTAssertEqual(try z.array(of: Float.self), (0..<100).map { Float($0) * 20 })
        XCTAssertEqual(try cache.keys.array(of: Float.self)[99], 1980)
        XCTAssertEqual(try cache.values.array(of: Float.self)[99], 495)

        let summary = done.summary
        XCTAssertEqual(summary.barriers, 2)
        XCTAssertEqual(summary.total.dispatches, 4)
        let scaling = summary.counts(ofKind: "Scale")
        XCTAssertEqual(scaling.dispatches, 3)
        XCTAssertEqual(scaling.bytesRead, 1200)
        XCTAssertEqual(scaling.bytesWritten, 1200)
        XCTAssertEqual(summary.counts(ofKind: "KVCacheWrite").dispatches, 1)
    }

    private func scale(_ x: Tensor, _ y: Tensor, by factor: Float, _ step: KernelEncoder) throws {
        try step.dispatch(
            "scale", in: library, buffers: [.read(x, at: 0), .write(y, at: 1)], inline: [.value(factor, at: 2)],
            threads: GridSize(x.count), kind: "Scale")
    }

    func testSliceOfATensorIsBoundAtItsOffset() throws {
        let x = try Tensor((0..<40).map(UInt32.init), shape: [4, 10], on: device)
        try device.encode { step in
            try step.dispatch(
                "specialized", in: library, buffers: [.readWrite(x[1..<3], at: 0)],
                constants: [.bool(true, at: 0), .uint32(100, at: 1)], threads: GridSize(20))
        }.wait()
        XCTAssertEqual(
            try x.array(of: UInt32.self), (0..<40).map { (10..<30).contains($0) ? 2 * $0 + 100 : $0 })
    }

    func testWholeThreadgroupsShareMemory() throws {
        let x = try Tensor((0..<96).map(UInt32.init), on: device)
        let sums = try Tensor.zeros(shape: [3], dtype: .uint32, on: device)
        try device.encode {
            try $0.dispatch(
                "sumOfGroup", in: library, buffers: [.read(x, at: 0), .write(sums, at: 1)],
                threadgroupMemory: [.byteCount(128, at: 0)], threadgroups: GridSize(3),
                threadsPerThreadgroup: GridSize(32))
        }.wait()
        XCTAssertEqual(try sums.array(of: UInt32.self), [496, 1520, 2544])
    }

    func testInvalidDispatchesAreRefused() throws {
        let x = try Tensor.zeros(shape: [4], on: device)
        try device.encode { step in
            assertRefused(what: "the name of the kernel has a zero in it", got: "a zero at byte 5") {
                try step.dispatch("scale\0s", in: library, buffers: [], threads: GridSize(1))
            }
            assertRefused(op: "scale", what: "buffer index", got: "-1") {
                try step.dispatch("scale", in: library, buffers: [.read(x, at: -1)], threads: GridSize(1))
            }
            assertRefused(op: "scale", what: "width of the grid", got: "-5") {
                try step.dispatch("scale", in: library, buffers: [.read(x, at: 0)], threads: GridSize(-5))
            }
            assertRefused(what: "larger than the kernel's parameter", got: "8 bytes") {
                try step.dispatch(
                    "scale", in: library, buffers: [.read(x, at: 0), .write(x, at: 1)], inline: [.value(0.5, at: 2)],
                    threads: GridSize(4))
            }
        }.wait()
    }

    func testCompileErrorsShowTheCompilersMessage() throws {
        assertRefused(what: "the source has a zero in it") {
            try KernelLibrary(text: "\0", label: "nothing", on: device)
        }
        let error = assertRefused(.shaderBuild) {
            try KernelLibrary(text: "kernel void broken() { undeclared = 1; }", label: "broken", on: device)
        }
        XCTAssert(error?.description.contains("undeclared") == true, "\(String(describing: error))")
        assertRefused(.libraryNotFound) { try KernelLibrary(path: "no/such/file.metal", on: device) }
    }
}
