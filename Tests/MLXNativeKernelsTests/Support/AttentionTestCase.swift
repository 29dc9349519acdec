import MLXNativeKernels
import MLXNativeKernelsCoreTests
import XCTest

/// A test with random tokens and reference attention over them.
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

    /// Numbers between -1 and 1 that every float type of a cache represents exactly.
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

    /// The C++ tests' reference: attention of query rows, the newest of `tokens`, over the tokens at held positions.
    func attended(
        _ queries: Tensor, over tokens: [Token], held: [Int]? = nil, scale: Float = 0, window: UInt32 = 0,
        seesFirst pinned: UInt32 = 0
    ) throws -> [Float] {
        let all = try queries.array(of: Float.self)
        var attention = core_test_attention(
            rows: all.count / (heads * headDim), heads: heads, kv_heads: kvHeads, head_dim: headDim,
            length: tokens.count, window: window, pinned: pinned, scale: scale)
        var output = [Float](repeating: 0, count: all.count)
        core_test_reference_attention(
            &attention, all, tokens.flatMap(\.key), tokens.flatMap(\.value),
            tokens.indices.map { held?.contains($0) ?? true }, &output)
        return output
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

    /// Appends tokens to the cache in one step.
    func append(_ tokens: [Token], to cache: AttentionCache, sequence: Int = 0) throws {
        try device.encode {
            try $0.append(
                keys: tensor(tokens.map(\.key)), values: tensor(tokens.map(\.value)), to: cache, sequence: sequence)
        }
    }
}
