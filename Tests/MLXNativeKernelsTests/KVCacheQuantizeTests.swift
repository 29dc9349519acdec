import Foundation
import MLXNativeKernels
import XCTest

/// KVCacheQuantize and KVCacheDequantize through the Swift API, over caller-owned caches. C++ tests cover the stored
/// bytes.
final class KVCacheQuantizeTests: DeviceTestCase {
    private let heads = 3
    private let headDim = 128

    /// The relative squared error of the optimal codebooks for the normal distribution.
    private let theory: [KVCodec.Bits: Double] = [
        .bits2: 0.1175, .bits3: 0.03454, .bits4: 0.009497, .bits5: 0.002499, .bits6: 0.0006421, .bits8: 0.00004116,
    ]

    private func normal(_ shape: [Int], seed: UInt64, dtype: ElementType = .float32) throws -> Tensor {
        var generator = SeededGenerator(seed: seed)
        let numbers = (0..<shape.reduce(1, *)).map { _ in
            let radius = (-2 * log(Double.random(in: 1e-9..<1, using: &generator))).squareRoot()
            return Float(radius * cos(2 * .pi * Double.random(in: 0..<1, using: &generator)))
        }
        return try Tensor(numbers, shape: shape, dtype: dtype, on: device)
    }

    private func plane(_ codec: KVCodec, capacity: Int, headDim: Int? = nil) throws -> QuantizedKVPlane {
        try .zeros(codec, heads: heads, headDim: headDim ?? self.headDim, capacity: capacity, on: device)
    }

    private func relativeError(_ got: Tensor, _ expected: Tensor) throws -> Double {
        let (got, expected) = (try got.array(of: Float.self), try expected.array(of: Float.self))
        let wrong = zip(got, expected).reduce(0) { $0 + pow(Double($1.0) - Double($1.1), 2) }
        return wrong / expected.reduce(0) { $0 + pow(Double($1), 2) }
    }

    func testRoundTripErrorMatchesTheory() throws {
        let shape = [40, heads, headDim]
        let keys = try normal(shape, seed: 1)
        let values = try normal(shape, seed: 2)
        for (bits, expected) in theory {
            let cache = QuantizedKVCacheView(
                keys: try plane(.turbo(bits), capacity: 64), values: try plane(.turbo(bits), capacity: 64))
            let keysBack = try Tensor.zeros(shape: shape, on: device)
            let valuesBack = try Tensor.zeros(shape: shape, on: device)
            try device.encode { step in
                try step.encode(KVCacheQuantize(keys: keys, values: values, into: cache, at: 9))
                try step.encode(KVCacheDequantize(keys: keysBack, values: valuesBack, from: cache, at: 9))
            }.wait()
            // Keys keep their projection onto themselves, which increases the error by 1 / (1 - error).
            let keyError = try relativeError(keysBack, keys)
            XCTAssertLessThan(keyError, expected / (1 - expected) * 1.02, "\(bits)")
            let valueError = try relativeError(valuesBack, values)
            XCTAssertLessThan(valueError, expected * 1.02, "\(bits)")
            XCTAssertGreaterThan(min(keyError, valueError), expected * 0.6, "\(bits)")
        }
    }

    func testEveryCodecStoresEveryFloatType() throws {
        let codecs: [(KVCodec, Int)] = [
            (.turbo(.bits6), 64), (.mlx1(.bits4), 64), (.mlx1(.bits6), 512), (.mlx1Unrotated(.bits6), 512),
            (.mlx1Affine4, 256),
        ]
        for (codec, headDim) in codecs {
            for dtype in [ElementType.float32, .float16, .bfloat16] {
                let keys = try normal([2, heads, headDim], seed: 3, dtype: dtype)
                let back = try Tensor.zeros(shape: [2, heads, headDim], dtype: dtype, on: device)
                let cache = QuantizedKVCacheView(keys: try plane(codec, capacity: 4, headDim: headDim))
                try device.encode { step in
                    try step.encode(KVCacheQuantize(keys: keys, into: cache, at: 1))
                    try step.encode(KVCacheDequantize(keys: back, from: cache, at: 1))
                }.wait()
                XCTAssertLessThan(try relativeError(back, keys), codec.bits == .bits4 ? 0.02 : 0.0015)
            }
        }
    }

    func testFieldsOfSourceAndDestinationReachTheOp() throws {
        let keys = try normal([heads, 5, headDim], seed: 4)
        let cache = QuantizedKVCacheView(
            keys: try .zeros(
                .turbo(.bits8), heads: heads, headDim: headDim, capacity: 6, sequences: 2, layout: .tokenMajor,
                on: device),
            layout: .tokenMajor, wrap: .ring, pinned: 2)
        let back = try Tensor.zeros(shape: [heads, 2, headDim], on: device)
        // Tokens 3 and 4 go to slots 5 and 2 of a ring behind two pinned slots.
        try device.encode { step in
            try step.encode(
                KVCacheQuantize(
                    keys: keys, into: cache, at: 9, sequence: 1, sourceLayout: .headMajor, sourceOffset: 3, tokens: 2))
            try step.encode(
                KVCacheDequantize(keys: back, from: cache, at: 9, sequence: 1, layout: .headMajor))
        }.wait()
        let all = try keys.array(of: Float.self)
        var expected: [Float] = []
        for head in 0..<heads { expected += all[(head * 5 + 3) * headDim..<(head + 1) * 5 * headDim] }
        let kept = try Tensor(expected, shape: [heads, 2, headDim], on: device)
        XCTAssertLessThan(try relativeError(back, kept), 1e-4)
        let scales = try XCTUnwrap(cache.keys.scales).array(of: Float.self)
        let stored = scales.indices.filter { scales[$0] != 0 }.map { $0 / heads }
        XCTAssertEqual(stored, [8, 8, 8, 11, 11, 11])
    }

    /// Columns of a fused tensor, and head-major tensors, yield the same codes as token-major tensors.
    func testSourcesAreViewsOfAnyLayout() throws {
        let fused = try normal([5, 2 * heads * headDim], seed: 8)
        let columns = try (0..<2).map {
            try HeadsView.columns(of: fused, from: $0 * heads * headDim, heads: heads, headDim: headDim)
        }
        let all = try fused.array(of: Float.self)
        func vector(_ token: Int, _ head: Int) -> ArraySlice<Float> {
            let start = (token * 2 * heads + head) * headDim
            return all[start..<start + headDim]
        }
        let tokenMajor = try (0..<2).map { plane in
            try Tensor(
                (0..<5).flatMap { t in (0..<heads).flatMap { vector(t, plane * heads + $0) } },
                shape: [5, heads, headDim], on: device)
        }
        let headMajor = try (0..<2).map { plane in
            try Tensor(
                (0..<heads).flatMap { h in (0..<5).flatMap { vector($0, plane * heads + h) } },
                shape: [heads, 5, headDim], on: device)
        }
        func stored(_ quantize: (QuantizedKVCacheView) -> KVCacheQuantize) throws -> [[UInt8]] {
            let cache = QuantizedKVCacheView(
                keys: try plane(.turbo(.bits4), capacity: 8), values: try plane(.turbo(.bits4), capacity: 8))
            try device.encode { try $0.encode(quantize(cache)) }
            let planes = try [cache.keys, XCTUnwrap(cache.values)]
            return try planes.flatMap { try [$0.codes.bytes(), XCTUnwrap($0.scales).bytes()] }
        }
        let expected = try stored { KVCacheQuantize(keys: tokenMajor[0], values: tokenMajor[1], into: $0, at: 2) }
        let ops: [(QuantizedKVCacheView) -> KVCacheQuantize] = [
            { KVCacheQuantize(keys: columns[0], values: columns[1], into: $0, at: 2) },
            { KVCacheQuantize(keys: headMajor[0].headMajor, values: headMajor[1].headMajor, into: $0, at: 2) },
            { KVCacheQuantize(keys: headMajor[0], values: columns[1], into: $0, at: 2, sourceLayout: .headMajor) },
            {
                KVCacheQuantize(
                    keys: columns[0], values: tokenMajor[1], into: $0,
                    rows: .init(sequences: [0, 0, 0, 0, 0], positions: [2, 3, 4, 5, 6]))
            },
        ]
        for (index, op) in ops.enumerated() { XCTAssertEqual(try stored(op), expected, "op \(index)") }
    }

    func testRowsHaveTheirOwnSequencesAndPositions() throws {
        let keys = try normal([2, heads, headDim], seed: 5)
        for rows: KVCacheWrite.Rows in [
            .init(sequences: [1, 0], positions: [3, 2]),
            .init(sequences: [1, 0], positions: .tensor(try Tensor([3, 2] as [UInt32], on: device))),
        ] {
            let cache = QuantizedKVCacheView(
                keys: try .zeros(
                    .turbo(.bits4), heads: heads, headDim: headDim, capacity: 4, sequences: 2, on: device))
            try device.encode { try $0.encode(KVCacheQuantize(keys: keys, into: cache, rows: rows)) }.wait()
            let scales = try XCTUnwrap(cache.keys.scales).array(of: Float.self)
            XCTAssertEqual(scales.indices.filter { scales[$0] != 0 }, [2, 6, 10, 15, 19, 23])
        }
    }

    func testMeansAndChannelScalesAreReversed() throws {
        let keys = try normal([20, heads, headDim], seed: 6)
        let offset: [Float] = (0..<heads * headDim).map { Float($0 % 7) * 10 }
        let shifted = try Tensor(
            try keys.array(of: Float.self).enumerated().map { $0.element + offset[$0.offset % offset.count] },
            shape: [20, heads, headDim], on: device)
        var quantized = try plane(.turbo(.bits4), capacity: 20)
        quantized.means = try Tensor(offset, shape: [heads, headDim], on: device)
        quantized.channelScales = try Tensor(
            [Float](repeating: 3, count: heads * headDim), shape: [heads, headDim], on: device)
        let cache = QuantizedKVCacheView(keys: quantized)
        let back = try Tensor.zeros(shape: [20, heads, headDim], on: device)
        try device.encode { step in
            try step.encode(KVCacheQuantize(keys: shifted, into: cache, at: 0))
            try step.encode(KVCacheDequantize(keys: back, from: cache, at: 0))
        }.wait()
        // Relative to the square without the mean, not to the whole.
        let left = try keys.array(of: Float.self).reduce(0) { $0 + pow(Double($1), 2) }
        let all = try shifted.array(of: Float.self).reduce(0) { $0 + pow(Double($1), 2) }
        XCTAssertLessThan(try relativeError(back, shifted) * all / left, 0.0105)
    }

    func testQueriesMatchKeysInTheRotatedDomain() throws {
        let keys = try normal([16, heads, headDim], seed: 7)
        let query = try normal([heads, headDim], seed: 8)
        let cache = QuantizedKVCacheView(keys: try plane(.turbo(.bits8), capacity: 16))
        let rotated = try Tensor.zeros(shape: [16, heads, headDim], on: device)
        try device.encode { step in
            try step.encode(KVCacheQuantize(keys: keys, into: cache, at: 0))
            try step.encode(KVCacheDequantize(keys: rotated, from: cache, at: 0, domain: .rotated))
        }.wait()
        let straight = try scores(query, keys)
        try device.encode { try $0.encode(Hadamard(query, signs: .turbo)) }.wait()
        for (turned, expected) in zip(try scores(query, rotated), straight) {
            XCTAssertEqual(turned, expected, accuracy: 0.5)
        }
    }

    private func scores(_ query: Tensor, _ keys: Tensor) throws -> [Float] {
        let (q, k) = (try query.array(of: Float.self), try keys.array(of: Float.self))
        return stride(from: 0, to: k.count, by: headDim).map { start in
            let head = start / headDim % heads
            return (0..<headDim).reduce(0) { $0 + q[head * headDim + $1] * k[start + $1] }
        }
    }

    func testOptionsAndCountsReachTheOp() throws {
        var numbers = try normal([2, heads, headDim], seed: 9).array(of: Float.self)
        numbers[5] = .nan
        numbers[headDim + 5] = .infinity
        let keys = try Tensor(numbers, shape: [2, heads, headDim], on: device)
        let counts = try Tensor([0, 0] as [UInt32], on: device)
        func scales(_ options: KVQuantizeOptions) throws -> [Float] {
            let cache = QuantizedKVCacheView(keys: try plane(.turbo(.bits2), capacity: 2))
            try device.encode { step in
                try step.encode(KVCacheQuantize(keys: keys, into: cache, at: 0, options: options, counts: counts))
            }.wait()
            return try XCTUnwrap(cache.keys.scales).array(of: Float.self)
        }
        let plain = try scales(.init(nonFinite: .zero))
        XCTAssertEqual([plain[0], plain[2]], [0, 0])
        XCTAssertEqual(try counts.array(of: UInt32.self), [2, 0])
        XCTAssert(try scales(.init())[2].isNaN)
        XCTAssertEqual(try counts.array(of: UInt32.self), [4, 0])
        XCTAssertEqual(try scales(.init(candidates: .five, keyScale: .unbiased, nonFinite: .zero)), plain)
        // The unbiased scale is larger.
        XCTAssertLessThan(try scales(.init(keyScale: .leastSquares))[4], plain[4])
        XCTAssertNotEqual(try scales(.init(candidates: .one)), plain)
    }

    func testPlanDescribesTheWork() throws {
        let keys = try normal([heads, headDim], seed: 10)
        let cache = QuantizedKVCacheView(keys: try plane(.turbo(.bits3), capacity: 8))
        let plan = try KVCacheQuantize(keys: keys, into: cache, at: 0).plan()
        XCTAssertEqual(plan.dispatches.count, 1)
        XCTAssertEqual(plan.dispatches[0].bytesRead, heads * headDim * 4)
        XCTAssertEqual(plan.dispatches[0].bytesWritten, heads * (48 + 2))
        let back = try Tensor.zeros(shape: [heads, headDim], dtype: .float16, on: device)
        XCTAssertEqual(
            try KVCacheDequantize(keys: back, from: cache, at: 0).plan().dispatches[0].bytesWritten,
            heads * headDim * 2)
    }

    func testErrorsHaveFourParts() throws {
        let keys = try normal([heads, headDim], seed: 11)
        let cache = QuantizedKVCacheView(keys: try plane(.turbo(.bits4), capacity: 2))
        func refuse(_ op: KVCacheQuantize, what: String = "", got: String = "", line: UInt = #line) {
            assertRefused(op: "KVCacheQuantize", what: what, got: got, line: line) { try op.plan() }
            assertRefused(op: "KVCacheQuantize", what: what, got: got, line: line) {
                try device.encode { try $0.encode(op) }
            }
        }
        refuse(KVCacheQuantize(keys: keys, into: cache, at: 2), got: "position 2")
        refuse(KVCacheQuantize(keys: keys, into: cache, at: -1), what: "position is out of range", got: "-1")
        refuse(KVCacheQuantize(keys: keys, into: cache, at: 0, sequence: 1), what: "sequence", got: "1")
        refuse(KVCacheQuantize(keys: keys, values: keys, into: cache, at: 0), what: "values")
        var factor = cache
        factor.keys.codec.scaleFactor = 0
        refuse(KVCacheQuantize(keys: keys, into: factor, at: 0), what: "scaleFactor", got: "0")
        var bits = cache
        bits.keys.codec.bits = .bits5
        refuse(KVCacheQuantize(keys: keys, into: bits, at: 0))
        let back = try Tensor.zeros(shape: [heads, headDim], on: device)
        assertRefused(op: "KVCacheDequantize") { try KVCacheDequantize(from: cache, at: 0).plan() }
        assertRefused(op: "KVCacheDequantize", what: "position is out of range", got: "-3") {
            try KVCacheDequantize(keys: back, from: cache, at: -3).plan()
        }
        assertRefused(op: "KVCacheDequantize", what: "values") {
            try KVCacheDequantize(values: back, from: cache, at: 0).plan()
        }
    }
}
