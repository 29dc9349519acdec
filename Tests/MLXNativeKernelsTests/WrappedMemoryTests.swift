import MLXNativeKernels
import XCTest

/// Caller-owned memory is used in place and released exactly once.
final class WrappedMemoryTests: DeviceTestCase {
    private func wrap(
        _ memory: UnsafeMutableRawBufferPointer, shape: [Int], byteOffset: Int = 0, _ released: Counter
    ) throws -> Tensor {
        try Tensor.wrapping(memory, shape: shape, dtype: .float32, byteOffset: byteOffset, on: device) {
            released.increment()
        }
    }

    private func pages(_ count: Int = 1) -> UnsafeMutableRawBufferPointer {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: count * 16384, alignment: 16384)
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        return memory
    }

    func testMemoryIsUsedInPlace() throws {
        let memory = pages()
        defer { memory.deallocate() }
        let released = Counter()
        try {
            let tensor = try wrap(memory, shape: [4], byteOffset: 8, released)
            try tensor.write([1, 2, 3, 4])
            XCTAssertEqual(memory.load(fromByteOffset: 12, as: Float.self), 2)
            memory.storeBytes(of: 9, toByteOffset: 20, as: Float.self)
            XCTAssertEqual(try tensor.array(of: Float.self), [1, 2, 3, 9])
            XCTAssertEqual(released.value, 0)
        }()
        XCTAssertEqual(released.value, 1)
    }

    func testDeallocatorRunsAfterTheLastUser() throws {
        let memory = pages()
        defer { memory.deallocate() }
        for sliceGoesLast in [true, false] {
            let released = Counter()
            var tensor: Tensor? = try wrap(memory, shape: [4, 2], released)
            var slice: Tensor? = try tensor?[1..<3]
            if sliceGoesLast { tensor = nil } else { slice = nil }
            XCTAssertEqual(released.value, 0)
            XCTAssertNoThrow(try (tensor ?? slice)?.bytes())
            tensor = nil
            slice = nil
            XCTAssertEqual(released.value, 1)
        }
    }

    func testDeallocatorRunsOnceWhenWrappingFails() throws {
        let memory = pages()
        defer { memory.deallocate() }
        for (shape, offset) in [([16384], 0), ([-1], 0), ([4], -4), ([4], 16380), ([4], 2)] {
            let released = Counter()
            assertRefused(op: "Tensor") { try wrap(memory, shape: shape, byteOffset: offset, released) }
            XCTAssertEqual(released.value, 1, "shape \(shape), offset \(offset)")
        }
    }

    func testMemoryLivesUntilItsWorkIsDone() throws {
        let memory = pages()
        defer { memory.deallocate() }
        let released = Counter()
        let cache = try AttentionCache(
            .init(kvHeads: 1, headDim: 4, capacity: 2), storage: .dense(.float32), isStorageOnly: true, on: device)
        let done = try {
            let source = try wrap(memory, shape: [1, 4], released)
            try source.write([1, 2, 3, 4])
            return try device.encode { try $0.append(keys: source, values: source, to: cache) }
        }()
        try done.wait()
        XCTAssertEqual(try cache.keys.array(of: Float.self).prefix(4), [1, 2, 3, 4])
    }

    func testEmptyMemoryCanBeWrapped() throws {
        let released = Counter()
        XCTAssertEqual(try wrap(UnsafeMutableRawBufferPointer(start: nil, count: 0), shape: [0], released).count, 0)
        XCTAssertEqual(released.value, 1)
    }
}
