import Foundation
import MLXNativeKernels
import XCTest

/// KVCacheQuantize and KVCacheDequantize through the Swift API, over caller-owned caches. C++ tests cover the stored
/// bytes.
final class KVCacheQuantizeTests: DeviceTestCase {
    private let heads = 3
    private let headDim = 128

    private func normal(_ shape: [Int], seed: UInt64, dtype: ElementType = .float32) throws -> Tensor {
        var generator = SeededGenerator(seed: seed)
        let numbers = (0..<shape.reduce(1, *)).map { _ in
            let radius = (-2 * log(Double.random(in: 1e-9..<1, using: &generator))).squareRoot()
            return Float(radius * cos(2 * .pi * Double.random(in: 0..<1, using: &generator)))
        }
        return try Tensor(numbers, shape: shape, dtype: dtype, on: device)
    }

    private func relativeError(_ got: Tensor, _ expected: Tensor) throws -> Double {
        let (got, expected) = (try got.array(of: Float.self), try expected.array(of: Float.self))
        let wrong = zip(got, expected).reduce(0) { $0 + pow(Double($1.0) - Double($1.1), 2) }
        return wrong / expected.reduce(0) { $0 + pow(Double($1), 2) }
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
}
