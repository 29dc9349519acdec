import Foundation
import MLXNativeKernels
import XCTest

/// A test with random tokens, and a plain attention in double over them.
class AttentionTestCase: DeviceTestCase {
    let heads = 4
    let kvHeads = 2
    let headDim = 64
    var generator = SeededGenerator(seed: 5)

    /// Keys or values of one position: `[kvHeads * headDim]`.
    struct Token {
        var key: [Float]
        var value: [Float]
    }

    /// Numbers between -1 and 1 that every float type of a cache holds exactly.
    func numbers(_ count: Int) -> [Float] {
        (0..<count).map { _ in Float(Int.random(in: -100...100, using: &generator)) / 128 }
    }

    func someTokens(_ count: Int) -> [Token] {
        (0..<count).map { _ in Token(key: numbers(kvHeads * headDim), value: numbers(kvHeads * headDim)) }
    }

    func tensor(_ rows: [[Float]]) throws -> Tensor {
        try Tensor(rows.flatMap { $0 }, shape: [rows.count, kvHeads, headDim], on: device)
    }

    func queries(_ rows: Int) throws -> Tensor {
        try Tensor(numbers(rows * heads * headDim), shape: [rows, heads, headDim], on: device)
    }

    func makeCache(
        _ storage: AttentionCache.Storage = .dense(.float32), capacity: Int = 64, sequences: Int = 1,
        whenFull: AttentionCache.WhenFull = .overwriteOldest
    ) throws -> AttentionCache {
        try AttentionCache(
            .init(kvHeads: kvHeads, headDim: headDim, capacity: capacity, sequences: sequences), storage: storage,
            whenFull: whenFull, on: device)
    }

    /// What rows of queries, the newest of `tokens`, make of those tokens whose positions are held.
    func attended(
        _ queries: Tensor, over tokens: [Token], held: [Int]? = nil, scale: Double? = nil, window: Int = .max,
        seesFirst pinned: Int = 0, softcap: Double? = nil
    ) throws -> [Float] {
        let all = try queries.array(of: Float.self)
        let rows = all.count / (heads * headDim)
        return (0..<rows * heads).flatMap { row -> [Float] in
            let position = tokens.count - rows + row / heads
            let first = row % heads / (heads / kvHeads) * headDim
            let query = all[row * headDim..<(row + 1) * headDim]
            var sum = 0.0
            var output = [Double](repeating: 0, count: headDim)
            for key in held ?? Array(tokens.indices) where key <= position {
                guard position - key < window || key < pinned else { continue }
                let product = zip(query, tokens[key].key[first..<first + headDim])
                    .reduce(0) { $0 + Double($1.0) * Double($1.1) }
                var score = product * (scale ?? 1 / Double(headDim).squareRoot())
                if let softcap { score = softcap * tanh(score / softcap) }
                let weight = exp(score)  // scores are too small to overflow
                sum += weight
                for element in 0..<headDim { output[element] += weight * Double(tokens[key].value[first + element]) }
            }
            return output.map { Float(sum == 0 ? 0 : $0 / sum) }
        }
    }

    func assertClose(
        _ got: Tensor, _ expected: [Float], accuracy: Float = 2e-5, _ context: String = "",
        file: StaticString = #filePath, line: UInt = #line
    ) throws {
        let got = try got.array(of: Float.self)
        XCTAssertEqual(got.count, expected.count, context, file: file, line: line)
        let worst = zip(got, expected).map { abs($0 - $1) }.max { !($1 <= $0) } ?? .infinity
        XCTAssertLessThan(worst, accuracy, context, file: file, line: line)
    }

    func zeros(_ rows: Int) throws -> Tensor { try Tensor.zeros(shape: [rows, heads, headDim], on: device) }

    /// Appends tokens that the cache takes as they are, in one step.
    func append(_ tokens: [Token], to cache: AttentionCache, sequence: Int = 0) throws {
        try device.encode {
            try $0.append(
                keys: tensor(tokens.map(\.key)), values: tensor(tokens.map(\.value)), to: cache, sequence: sequence)
        }
    }
}
