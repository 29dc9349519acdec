import Foundation
import MLXNativeKernels
import XCTest

@testable import JargonLM

/// Parts of a session: contents of caches, attention of heads, counters. The model is small, with random weights.
final class DecodeSessionTests: XCTestCase {
    private let sizes = Configuration(
        width: 32, layers: 4, heads: 4, kvHeads: 2, headDim: 32, hidden: 48, window: 5, context: 12)

    private func session(_ storage: StorageChoice = .f32, measuresOps: Bool = false) throws -> DecodeSession {
        try DecodeSession(randomModel(sizes), storage: storage, measuresOps: measuresOps, on: bestDevice())
    }

    func testWindowedLayersHaveRingsThatWrap() throws {
        var sizes = sizes
        sizes.context = 70
        let session = try DecodeSession(randomModel(sizes), storage: .f32, on: bestDevice())
        for token in 0..<70 { _ = try session.logits(after: UInt8(token)) }
        XCTAssertEqual(session.caches.map(\.dimensions.capacity), [68, 70, 68, 70])
        XCTAssertEqual(try session.slots(ofLayer: 0), [68, 69] + Array(2..<68))
        XCTAssertEqual(try session.slots(ofLayer: 1), Array(0..<70))
        XCTAssertEqual(session.bytesPerToken, 4 * 2 * 2 * 32 * 4)
        XCTAssertEqual(try session.bytesInUse, session.cacheBytes)
        XCTAssertEqual(session.cacheBytes(atContext: 100), (68 + 100 + 68 + 100) * 2 * 2 * 32 * 4)
    }

    func testWeightsMatchTheKernel() throws {
        for storage in [StorageChoice.f32, .f16, .quantized(.bits4)] {
            let session = try session(storage)
            for token in [7, 1, 200, 3, 90, 8, 7, 11] as [UInt8] {
                _ = try session.logits(after: token)
                for layer in 0..<4 {
                    let held = try session.held(byLayer: layer)
                    let values = try session.stored(.values, byLayer: layer)
                    let heads = try session.attention(layer: layer, heads: 0..<4)
                    XCTAssertEqual(heads.count, 4)
                    for (head, weights) in heads.enumerated() {
                        XCTAssertEqual(weights.count, session.position)
                        XCTAssertEqual(weights.reduce(0, +), 1, accuracy: 1e-5)
                        XCTAssert(weights[..<held.lowerBound].allSatisfy { $0 == 0 })
                        for element in 0..<32 {
                            let expected = held.reduce(Float(0)) { sum, position in
                                let row = (position - held.lowerBound) * 2 + head / 2
                                return sum + weights[position] * values[row * 32 + element]
                            }
                            // The kernel for a quantized cache multiplies in f16.
                            let got = session.newest[layer].attended[head * 32 + element]
                            XCTAssertEqual(got, expected, accuracy: storage.isQuantized ? 4e-3 : 1e-5, storage.name)
                        }
                    }
                }
            }
        }
    }

    /// Eight tokens at once, in layers with a window of five, equal eight single tokens.
    func testAPromptIsReadAtOnce() throws {
        let prompt = [7, 1, 200, 3, 90, 8, 7, 11] as [UInt8]
        for storage in [StorageChoice.f32, .quantized(.bits8)] {
            let single = try session(storage)
            let whole = try session(storage)
            var expected: [Float] = []
            for token in prompt { expected = try single.logits(after: token) }
            let got = try whole.logits(after: prompt)
            for (a, b) in zip(got, expected) { XCTAssertEqual(a, b, accuracy: storage.isQuantized ? 2e-2 : 1e-4) }
            XCTAssertEqual(whole.tokens, prompt)
            XCTAssertEqual(whole.costs.submissions, 4)
            XCTAssertEqual(try whole.slots(ofLayer: 0), try single.slots(ofLayer: 0))
            XCTAssertEqual(try whole.logits(after: []), got)
            assertThrows(.contextFull, try whole.logits(after: prompt))
            XCTAssertEqual(whole.position, 8)
        }
    }

    func testMeasuringChangesOnlyOpTimes() throws {
        let plain = try session(.quantized(.bits8))
        let measured = try session(.quantized(.bits8), measuresOps: true)
        for token in [1, 2, 3, 250] as [UInt8] {
            XCTAssertEqual(try plain.logits(after: token), try measured.logits(after: token))
        }
        for costs in [plain.costs, measured.costs] {
            XCTAssertEqual(costs.submissions, 4 * 4)
            XCTAssertEqual(costs.parts.count, 2)
            XCTAssertEqual(costs.parts.values.reduce(0) { $0 + $1.dispatches }, costs.dispatches)
        }
        XCTAssertEqual(plain.costs.dispatches, measured.costs.dispatches)
        XCTAssertEqual(plain.costs.bytesMoved, measured.costs.bytesMoved)
        XCTAssert(plain.costs.parts.values.allSatisfy { $0.seconds == 0 })
        let isKnown = measured.costs.parts.values.contains { $0.seconds > 0 }
        XCTAssert(measured.costs.parts.values.allSatisfy { ($0.seconds > 0) == isKnown })
        XCTAssert(isKnown || measured.device.kind != .host)
    }

    func testEndsWithTheContextAndRestarts() throws {
        let session = try session()
        let first = try session.logits(after: 9)
        for _ in 1..<12 { _ = try session.logits(after: 9) }
        assertThrows(.contextFull, try session.logits(after: 9))
        XCTAssertEqual(session.position, 12)
        session.reset()
        XCTAssertEqual(session.position, 0)
        XCTAssertEqual(try session.bytesInUse, 0)
        XCTAssertEqual(try session.logits(after: 9), first)
    }

    /// A device failure within a token leaves layers that differ.
    func testAFailureWithinATokenEndsTheSession() throws {
        let session = try session()
        let first = try session.logits(after: 1)
        // The last layer's cache is full, so the fourth of four submissions fails.
        let keys = try Tensor.zeros(shape: [2, 32], on: session.device)
        for _ in 0..<11 {
            try session.device.encode { try $0.append(keys: keys, values: keys, to: session.caches[3]) }.wait()
        }
        XCTAssertThrowsError(try session.logits(after: 2)) { XCTAssert($0 is KernelError, "\($0)") }
        XCTAssertEqual(session.position, 1)
        XCTAssertEqual(try session.attention(layer: 0, heads: 0..<1), [[0]])
        assertThrows(.interrupted, try session.logits(after: 2))
        session.reset()
        XCTAssertEqual(try session.logits(after: 1), first)
    }

    func testInvalidSizesAreRefused() throws {
        let weights = try randomWeights(sizes)
        func model(_ size: WritableKeyPath<Configuration, Int>, _ number: Int) throws -> LanguageModel {
            var changed = sizes
            changed[keyPath: size] = number
            return try LanguageModel(weights, configuration: changed)
        }
        XCTAssertNoThrow(try model(\.width, 32))
        let all: [WritableKeyPath<Configuration, Int>] = [
            \.width, \.layers, \.heads, \.kvHeads, \.headDim, \.hidden, \.window, \.context,
        ]
        for size in all {
            for number in [0, -1, .max] {
                assertThrows(.invalidArgument, try model(size, number), "\(size) \(number)")
            }
        }
        assertThrows(.invalidArgument, try model(\.kvHeads, 3))
        assertThrows(.wrongTensor, try model(\.width, 33))
    }

    func testPromptsLeaveSpace() throws {
        XCTAssertEqual(try promptTokens("", context: 4), [10])
        XCTAssertEqual(try promptTokens("abc", context: 4), [97, 98, 99])
        assertThrows(.contextFull, try promptTokens("abcd", context: 4))
    }

    func testStoragesHaveNames() {
        XCTAssertEqual(StorageChoice(named: "4"), .quantized(.bits4))
        XCTAssertEqual(StorageChoice(named: "4-bit"), .quantized(.bits4))
        XCTAssertEqual(StorageChoice(named: "k5v4"), .quantized(keys: .bits5, values: .bits4))
        XCTAssertEqual(StorageChoice(named: "k4v4")?.name, nil)
        XCTAssertEqual(StorageChoice(named: "f16"), .f16)
        XCTAssertNil(StorageChoice(named: "9"))
        XCTAssertNil(StorageChoice(named: ""))
        XCTAssertEqual(Set(StorageChoice.all.map(\.name)).count, StorageChoice.all.count)
    }

    func testCountsTheBundledModelsWeights() throws {
        XCTAssertEqual(try LanguageModel.bundled().parameterCount, 4_655_360)
    }
}
