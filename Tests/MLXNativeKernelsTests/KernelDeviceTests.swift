import MLXNativeKernels
import XCTest

final class KernelDeviceTests: XCTestCase {
    override class func setUp() { chooseDevice() }

    func testDefaultDeviceIsTheFirstOfAll() throws {
        let device = try KernelDevice.default()
        let first = try XCTUnwrap(KernelDevice.all.first)
        XCTAssertEqual(device.kind, first.kind)
        XCTAssertEqual(device.name, first.name)
        XCTAssertFalse(device.name.isEmpty)
        XCTAssert("\(device)".hasPrefix(device.name))
        let all = KernelDevice.all.map(\.description)
        XCTAssertEqual(Set(all).count, all.count, "\(all)")
        #if os(Linux)
            let environment = ProcessInfo.processInfo.environment
            XCTAssertEqual(device.kind.rawValue, environment["MNK_DEVICE"] ?? "host")
            let isVirtual = environment["MNK_SOFT_METAL_MACHINE"] == "paravirtual"
            XCTAssertNotEqual(all.contains("Soft M1 (metal)"), isVirtual, "\(all)")
            XCTAssert(all.contains { $0.hasPrefix("Host (") }, "\(all)")
        #endif
    }

    func testReportsTheOriginOfItsKernels() throws {
        let host = try KernelDevice.host()
        XCTAssertEqual(try host.libraryOrigin, LibraryOrigin(kind: .program, path: nil))
        XCTAssertEqual("\(try host.libraryOrigin)", "the program")
        let text = try KernelLibrary(text: TestKernels.text, label: "test kernels", on: host)
        XCTAssertEqual(text.origin.kind, .givenText)
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("origin-\(UUID()).metal")
        try TestKernels.text.write(to: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: file) }
        let loaded = try KernelLibrary(path: file.path, on: host)
        XCTAssertEqual(loaded.origin, LibraryOrigin(kind: .givenFile, path: file.path))
        XCTAssertEqual("\(loaded.origin)", "given file (\(file.path))")
    }

    func testHostDeviceComputesTheSameWithAllOptions() throws {
        for options in [
            HostOptions(), HostOptions(workers: 1), HostOptions(workers: 3, orderSeed: 5, checking: .guarded),
            HostOptions(level: .baseline),
        ] {
            let device = try KernelDevice.host(options)
            XCTAssertEqual(device.kind, .host)
            let source = try Tensor((0..<64).map(Float.init), shape: [4, 2, 8], on: device)
            let cache = try AttentionCache(.init(kvHeads: 2, headDim: 8, capacity: 4), on: device)
            try device.encode { try $0.append(keys: source, values: source, to: cache) }.wait()
            let stored = try cache.keys.reshaped([2, 4, 8])[1..<2].array(of: Float.self)
            XCTAssertEqual(stored, (0..<4).flatMap { t in (0..<8).map { Float(t * 16 + 8 + $0) } }, "\(options)")
        }
    }

    func testObjectsOutliveTheirDevice() throws {
        var device: KernelDevice? = try KernelDevice.host(HostOptions(workers: 1))
        let tensor = try Tensor([1, 2, 3], on: XCTUnwrap(device))
        let cache = try AttentionCache(
            .init(kvHeads: 1, headDim: 1, capacity: 2), isStorageOnly: true, on: XCTUnwrap(device))
        device = nil
        XCTAssertEqual(try tensor.array(of: Float.self), [1, 2, 3])
        XCTAssertEqual(try cache.count, 0)
        XCTAssertEqual(try cache.keys.bytes().count, 4)
    }
}
