import Foundation
import MLXNativeKernels
import XCTest

/// The op through the Swift API: each field of the descriptor reaches the op. C++ tests cover the op itself.
final class MultiRoPETests: DeviceTestCase {
    /// Vectors whose pair 0 is (1, 0) under half-split, so that its elements become the cosine and the sine.
    private func units(_ shape: [Int], second: Bool = false) throws -> Tensor {
        let headDim = shape.last!
        var values = [Float](repeating: 0, count: shape.reduce(1, *))
        for vector in 0..<values.count / headDim { values[vector * headDim + (second ? 1 : 0)] = 1 }
        return try Tensor(values, shape: shape, on: device)
    }

    private func run(_ rope: MultiRoPE) throws {
        try device.encode { try $0.encode(rope) }.wait()
    }

    /// The angles of one pair of each vector.
    private func angles(_ tensor: Tensor, first: Int = 0, second: Int) throws -> [Double] {
        let values = try tensor.array(of: Float.self)
        return stride(from: 0, to: values.count, by: tensor.shape.last!).map { start in
            atan2(Double(values[start + second]), Double(values[start + first]))
        }
    }

    private func assertAngles(
        _ got: [Double], _ expected: [Double], file: StaticString = #filePath, line: UInt = #line
    ) {
        XCTAssertEqual(got.count, expected.count, file: file, line: line)
        for (got, expected) in zip(got, expected) {
            XCTAssertEqual(cos(got - expected), 1, accuracy: 1e-9, "\(got), \(expected)", file: file, line: line)
        }
    }

    func testRotateAcceptsTheLayoutOfMLX() throws {
        for isStatedByViews in [false, true] {
            let queries = try units([1, 2, 3, 8])
            let keys = try units([1, 1, 3, 8])
            let positions = MultiRoPE.Positions.text(startingAt: 7)
            try device.encode { step in
                if isStatedByViews {
                    try step.rotate(queries.headMajor, keys.headMajor, positions: positions, with: RotaryEmbedding())
                } else {
                    try step.rotate(queries, keys, layout: .headMajor, positions: positions, with: RotaryEmbedding())
                }
            }
            assertAngles(try angles(queries, second: 4), [7, 8, 9, 7, 8, 9])
            assertAngles(try angles(keys, second: 4), [7, 8, 9])
        }
    }

    func testRotateAcceptsColumns() throws {
        let fused = try units([2, 3, 8])
        let flat = try fused.reshaped([2, 24])
        let queries = try HeadsView.columns(of: flat, from: 0, heads: 2, headDim: 8)
        let keys = try HeadsView.columns(of: flat, from: 16, heads: 1, headDim: 8)
        for layout in KVLayout.allCases {  // strides take precedence
            try device.encode {
                try $0.rotate(queries, layout: layout, positions: .text(startingAt: 3), with: RotaryEmbedding())
            }
        }
        try device.encode { try $0.rotate(queries, keys, positions: .text(startingAt: 1), with: RotaryEmbedding()) }
        assertAngles(try angles(fused, second: 4), [7, 7, 1, 10, 10, 2])
    }

    func testAcceptsEveryKindOfPositions() throws {
        let tensor = try Tensor([5, -6] as [Int32], on: device)
        let unsigned = try Tensor([5, 6] as [UInt32], on: device)
        let forms: [(MultiRoPE.Positions, [Double])] = [
            (.text(startingAt: -1), [-1, 0]), (.perToken([5, -6]), [5, -6]), (.perAxis([[5, -6]]), [5, -6]),
            (.tensor(tensor), [5, -6]), (.tensor(unsigned), [5, 6]),
        ]
        for (positions, expected) in forms {
            let queries = try units([2, 1, 8])
            try run(MultiRoPE(HeadsView(queries), positions: positions, with: RotaryEmbedding()))
            assertAngles(try angles(queries, second: 4), expected)
        }
    }

    func testAxesApplyToTheirSections() throws {
        let positions = MultiRoPE.Positions.perAxis([[1], [2], [3], [4]])
        let layouts: [(RotaryEmbedding.Layout, RotaryEmbedding.OtherAxis, Double)] = [
            (.mrope(1, 3, 0), .axis0, 2), (.mrope(1, 0, 0, 3), .axis0, 4),
            (.imrope(2, 1, 1), .axis0, 2), (.imrope(3, 0, 1), .axis0, 1), (.imrope(3, 0, 1), .axis3, 4),
            (.vision(1, 3), .axis0, 2),
        ]
        for (layout, otherAxis, expected) in layouts {
            let queries = try units([1, 8], second: true)
            let rotary = RotaryEmbedding(layout: layout, base: 1, otherAxis: otherAxis)
            try run(MultiRoPE(HeadsView(queries), positions: positions, with: rotary))
            assertAngles(try angles(queries, first: 1, second: 5), [expected])
        }
        let text = MultiRoPE(HeadsView(try units([1, 8])), positions: positions, with: RotaryEmbedding())
        assertRefused(what: "positions have axes that the layout does not use") { try run(text) }
    }

    func testOffsetsApplyPerSequence() throws {
        let tensor = try Tensor([100, -100] as [Int32], on: device)
        for offsets: MultiRoPE.Offsets in [[100, -100], .tensor(tensor)] {
            let queries = try units([2, 2, 1, 8])
            try device.encode { step in
                try step.rotate(
                    queries, positions: .text(startingAt: 3), offsets: offsets, with: RotaryEmbedding())
            }.wait()
            assertAngles(try angles(queries, second: 4), [103, 104, -97, -96])
        }
    }

    func testTheEmbeddingReachesTheOp() throws {
        let embeddings: [(RotaryEmbedding, Double, Int)] = [
            (RotaryEmbedding(layout: .interleavedPairs), 1, 1),
            (RotaryEmbedding(ropeDim: 4), 1, 2),
            (RotaryEmbedding(ropeDim: 4, pairing: .halfOfHeadDim), 1, 4),
            (RotaryEmbedding(pairing: .neighbors), 1, 1),
            (RotaryEmbedding(scale: 0.25), 0.25, 4),
            (RotaryEmbedding(frequencyFactors: [4, 1, 1, 1]), 0.25, 4),
            (RotaryEmbedding().inverse, -1, 4),
        ]
        for (rotary, expected, second) in embeddings {
            let queries = try units([1, 8])
            try run(MultiRoPE(HeadsView(queries), positions: .text(startingAt: 1), with: rotary))
            assertAngles(try angles(queries, second: second), [expected])
        }
        let second = try units([1, 8], second: true)
        try run(MultiRoPE(HeadsView(second), positions: .text(startingAt: 1), with: RotaryEmbedding(base: 16)))
        assertAngles(try angles(second, first: 1, second: 5), [0.5])
    }

    func testModesOfModelFiles() throws {
        XCTAssertEqual(try RotaryEmbedding.Layout(mode: 0), .interleavedPairs)
        XCTAssertEqual(try RotaryEmbedding.Layout(mode: 2), .halfSplit)
        XCTAssertEqual(try RotaryEmbedding.Layout(mode: 8, sections: [16, 24, 24]), .mrope(16, 24, 24))
        XCTAssertEqual(try RotaryEmbedding.Layout(mode: 24, sections: [18, 18, 18, 18]), .vision(18, 18))
        XCTAssertEqual(try RotaryEmbedding.Layout(mode: 40, sections: [24, 20, 20, 0]), .imrope(24, 20, 20))
        assertRefused(op: "RotaryEmbedding", what: "mode is not known", got: "mode 3") {
            try RotaryEmbedding.Layout(mode: 3)
        }
        assertRefused(op: "RotaryEmbedding", got: "mode 2 with sections [16, 24, 24]") {
            try RotaryEmbedding.Layout(mode: 2, sections: [16, 24, 24])
        }
        assertRefused(op: "RotaryEmbedding", got: "[1, 1, 1, 1, 1]") {
            try RotaryEmbedding.Layout(mode: 8, sections: [1, 1, 1, 1, 1])
        }
    }

    func testErrorsHaveFourParts() throws {
        let queries = try units([2, 1, 8])
        func refuse(
            _ what: String, positions: MultiRoPE.Positions = .text(startingAt: 0), offsets: MultiRoPE.Offsets? = nil,
            rotary: RotaryEmbedding = RotaryEmbedding(), line: UInt = #line
        ) {
            assertRefused(op: "MultiRoPE", what: what, line: line) {
                try device.encode { step in
                    try step.rotate(queries, positions: positions, offsets: offsets, with: rotary)
                }
            }
        }
        refuse("positions do not match", positions: .perToken([1]))
        refuse("positions do not match", positions: .perAxis([]))
        refuse("different numbers of positions", positions: .perAxis([[1, 2], [1]]))
        refuse("a position is out of range", positions: .perToken([1, 1 << 31]))
        refuse("a position is out of range", positions: .text(startingAt: 1 << 31))
        refuse("an offset is out of range", offsets: [1 << 40])
        refuse("offsets do not match", offsets: [1, 2])
        refuse("a section is out of range", rotary: RotaryEmbedding(layout: .mrope(-1, 2, 3)))
        refuse("ropeDim is out of range", rotary: RotaryEmbedding(ropeDim: -2))
        refuse("originalContext is out of range", rotary: RotaryEmbedding(yarn: .init(originalContext: -1)))
        let strides = HeadsView.Strides(tokens: 2, heads: 1, headDim: 8, offset: -1, tokenStride: 8, headStride: 8)
        assertRefused(op: "MultiRoPE", what: "offset of queries is out of range", got: "-1") {
            try MultiRoPE(
                HeadsView(queries, strides: strides), positions: .text(startingAt: 0), with: RotaryEmbedding()
            ).plan()
        }
        XCTAssertEqual(try queries.array(of: Float.self)[8], 1)
    }
}
