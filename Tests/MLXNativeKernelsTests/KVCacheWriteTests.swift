import MLXNativeKernels
import XCTest

/// The op through the Swift API: each field of the descriptor reaches the op. C++ tests cover the op itself.
final class KVCacheWriteTests: DeviceTestCase {
    private let heads = 2
    private let headDim = 4

    private func source(_ positions: Range<Int>, dtype: ElementType = .float32) throws -> Tensor {
        try tokens(positions, heads: heads, headDim: headDim, dtype: dtype)
    }

    private func row(_ position: Int, head: Int) -> [Float] {
        (0..<headDim).map { number(position: position, head: head, element: $0) }
    }

    private func run(_ write: KVCacheWrite) throws {
        try device.encode { try $0.encode(write) }.wait()
    }

    /// The same tokens head-major, as a view or through the layout of the source, and as columns of a wider tensor.
    func testSourcesAreViewsOfAnyLayout() throws {
        let tokenMajor = try source(0..<3)
        let headMajor = try Tensor(
            (0..<heads).flatMap { h in (0..<3).flatMap { row($0, head: h) } }, shape: [heads, 3, headDim], on: device)
        // One column before the heads and two after them.
        let wide = try Tensor(
            (0..<3).flatMap { t in [-1] + (0..<heads).flatMap { row(t, head: $0) } + [-1, -1] },
            shape: [3, 1 + heads * headDim + 2], on: device)
        let columns = try HeadsView.columns(of: wide, from: 1, heads: heads, headDim: headDim)
        func stored(_ write: (KVCacheView) throws -> KVCacheWrite) throws -> [[Float]] {
            let keys = try Tensor.zeros(shape: [heads, 4, headDim], on: device)
            let values = try Tensor.zeros(shape: [heads, 4, headDim], on: device)
            try run(write(KVCacheView(keys: keys, values: values)))
            return try [keys.array(of: Float.self), values.array(of: Float.self)]
        }
        let expected = try stored { KVCacheWrite(keys: tokenMajor, values: tokenMajor, into: $0, at: 1) }
        XCTAssertEqual(Array(expected[0][headDim..<2 * headDim]), row(0, head: 0))
        let writes: [(KVCacheView) throws -> KVCacheWrite] = [
            { KVCacheWrite(keys: headMajor.headMajor, values: headMajor.headMajor, into: $0, at: 1) },
            { KVCacheWrite(keys: headMajor, values: headMajor, into: $0, at: 1, sourceLayout: .headMajor) },
            { KVCacheWrite(keys: columns, values: columns, into: $0, at: 1) },
            { KVCacheWrite(keys: columns, values: headMajor, into: $0, at: 1, sourceLayout: .headMajor) },
            { KVCacheWrite(keys: tokenMajor, values: columns, into: $0, at: 1) },
            {
                KVCacheWrite(
                    keys: headMajor.headMajor, values: columns, into: $0,
                    rows: .init(sequences: [0, 0, 0], positions: [1, 2, 3]))
            },
        ]
        for (index, write) in writes.enumerated() {
            XCTAssertEqual(try stored(write), expected, "write \(index)")
        }
        var changed = KVCacheWrite(keys: tokenMajor, into: KVCacheView(keys: headMajor), at: 0)
        changed.keys = columns
        changed.values = columns.headsView
        XCTAssertEqual(changed.keys.strides?.heads, heads)
        assertRefused(op: "KVCacheWrite", what: "offset of keys is out of range", got: "-1") {
            changed.keys.strides?.offset = -1
            return try changed.plan()
        }
        // C would read it as 1.
        assertRefused(op: "KVCacheWrite", what: "sequences of keys is 0", got: "0") {
            changed.keys.strides?.offset = 0
            changed.keys.strides?.sequences = 0
            return try changed.plan()
        }
    }

    func testRowsHaveTheirOwnSequencesAndPositions() throws {
        let sequences = try Tensor([2, 0] as [UInt32], on: device)
        let positions = try Tensor([1, 3] as [UInt32], on: device)
        let writes: [KVCacheWrite.Rows] = [
            .init(sequences: [2, 0], positions: [1, 3]),
            .init(sequences: .tensor(sequences), positions: .tensor(positions)),
        ]
        for rows in writes {
            let memory = try Tensor.zeros(shape: [3, heads, 4, headDim], on: device)
            try run(KVCacheWrite(keys: source(0..<2), into: KVCacheView(keys: memory), rows: rows))
            let stored = try memory.array(of: Float.self)
            var expected = [Float](repeating: 0, count: memory.count)
            for (token, sequence, slot) in [(0, 2, 1), (1, 0, 3)] {
                for head in 0..<heads {
                    let start = ((sequence * heads + head) * 4 + slot) * headDim
                    expected.replaceSubrange(start..<start + headDim, with: row(token, head: head))
                }
            }
            assertSame(stored, expected, "\(rows)")
        }
    }

    func testPlanDescribesTheWorkAndRunsNothing() throws {
        let memory = try Tensor.zeros(shape: [heads, 6, headDim], dtype: .float16, on: device)
        let write = KVCacheWrite(keys: try source(0..<3), into: KVCacheView(keys: memory), at: 0)
        let plan = try write.plan()
        XCTAssertEqual(plan.dispatches.count, 1)
        XCTAssertEqual(plan.dispatches[0].bytesRead, 3 * 2 * 4 * 4)
        XCTAssertEqual(plan.dispatches[0].bytesWritten, 3 * 2 * 4 * 2)
        XCTAssertEqual(plan.scratchBytes, 0)
        XCTAssertFalse(plan.dispatches[0].function.isEmpty)
        XCTAssertGreaterThan(plan.dispatches[0].grid.width, 0)
        XCTAssert("\(plan)".contains(plan.dispatches[0].function), "\(plan)")
        XCTAssert(try memory.bytes().allSatisfy { $0 == 0 })

        let done = try device.encode { try $0.encode(write) }
        XCTAssertEqual(done.summary.total.bytesRead, plan.dispatches[0].bytesRead)
        XCTAssertEqual(done.summary.total.bytesWritten, plan.dispatches[0].bytesWritten)
        try done.wait()
    }

    func testNegativeNumbersAreRefused() throws {
        let memory = try Tensor.zeros(shape: [heads, 2, headDim], on: device)
        let view = KVCacheView(keys: memory)
        let keys = try source(0..<1)
        for (write, what, got) in [
            (KVCacheWrite(keys: keys, into: view, at: -1), "position", "-1"),
            (KVCacheWrite(keys: keys, into: view, rows: .init(sequences: [-2], positions: [0])), "sequence", "-2"),
            (KVCacheWrite(keys: keys, into: .init(keys: memory, wrap: .ring, pinned: -1), at: 0), "pinned", "-1"),
        ] {
            assertRefused(op: "KVCacheWrite", what: what, got: got) { try write.plan() }
        }
    }
}
