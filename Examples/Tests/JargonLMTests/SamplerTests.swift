import Foundation
import XCTest

@testable import JargonLM

final class SamplerTests: XCTestCase {
    private let logits: [Float] = [1, 3, 3, 2] + [Float](repeating: -20, count: 252)

    func testGreedyTakesTheFirstMaximum() throws {
        var greedy = Sampler.greedy
        XCTAssertEqual(greedy.choose(logits), 1)
        var cold = try Sampler(temperature: 0)
        XCTAssertEqual(cold.choose(logits), 1)
    }

    func testDrawsByProbability() throws {
        var sampler = try Sampler(temperature: 1, topP: 1, seed: 3)
        var counts = [Int](repeating: 0, count: 256)
        let draws = 20_000
        for _ in 0..<draws { counts[Int(sampler.choose(logits))] += 1 }
        let odds = logits.map { exp(Double($0)) }
        let all = odds.reduce(0, +)
        for index in 0..<4 {
            XCTAssertEqual(Double(counts[index]) / Double(draws), odds[index] / all, accuracy: 0.015)
        }
    }

    func testTopPExcludesTheRest() throws {
        // The two best have 0.39 each, so half of the total needs exactly these two.
        var sampler = try Sampler(temperature: 1, topP: 0.5, seed: 5)
        XCTAssertEqual(Set((0..<500).map { _ in sampler.choose(logits) }), [1, 2])
        var narrow = try Sampler(temperature: 1, topP: 0.01, seed: 5)
        XCTAssertEqual(Set((0..<50).map { _ in narrow.choose(logits) }), [1])
    }

    func testTemperatureSharpens() throws {
        var sampler = try Sampler(temperature: 0.1, topP: 1, seed: 5)
        XCTAssertEqual(Set((0..<500).map { _ in sampler.choose(logits) }), [1, 2])
    }

    func testASeedIsReproducible() throws {
        func drawn(_ seed: UInt64) throws -> [UInt8] {
            var sampler = try Sampler(temperature: 1, seed: seed)
            return (0..<50).map { _ in sampler.choose([Float](repeating: 0, count: 256)) }
        }
        XCTAssertEqual(try drawn(7), try drawn(7))
        XCTAssertNotEqual(try drawn(7), try drawn(8))
    }

    func testNonFiniteScoresAreNotChosen() throws {
        var greedy = Sampler.greedy
        var warm = try Sampler(temperature: 1, topP: 1, seed: 2)
        var cold = try Sampler(temperature: 1e-300, topP: 1, seed: 2)
        let logits: [Float] = [.nan, 1, .infinity, -.infinity, 0]
        XCTAssertEqual(greedy.choose(logits), 1)
        XCTAssertEqual(cold.choose(logits), 1)
        XCTAssertEqual(Set((0..<200).map { _ in warm.choose(logits) }), [1, 4])
        for none in [[], [.nan], [Float](repeating: -.infinity, count: 256)] {
            XCTAssertEqual(greedy.choose(none), 0)
            XCTAssertEqual(warm.choose(none), 0)
        }
    }

    func testRefusesArgumentsOutOfRange() {
        for temperature in [-1, .nan, .infinity] { XCTAssertThrowsError(try Sampler(temperature: temperature)) }
        for topP in [0, -1, 1.1, .nan] { XCTAssertThrowsError(try Sampler(topP: topP)) }
    }
}

final class ByteTextTests: XCTestCase {
    func testHoldsBackIncompleteCharacters() {
        var text = ByteText()
        XCTAssertEqual(Array("aé€😀".utf8).map { text.append($0) }, ["a", "", "é", "", "", "€", "", "", "", "😀"])
        XCTAssertEqual(text.finish(), "")
    }

    func testReplacesInvalidText() {
        XCTAssertEqual(ByteText.text([0x41, 0xFF, 0x42]), "A\u{FFFD}B")
        XCTAssertEqual(ByteText.text([0xE2, 0x82]), "\u{FFFD}\u{FFFD}", "an end within a character")
        XCTAssertEqual(ByteText.text([0xE2, 0x41]), "\u{FFFD}A")
        XCTAssertEqual(ByteText.text([0xED, 0xA0, 0x80]), "\u{FFFD}\u{FFFD}\u{FFFD}", "half of a pair")
        XCTAssertEqual(ByteText.text([0xC0, 0x80]), "\u{FFFD}\u{FFFD}", "a zero that is too long")
        XCTAssertEqual(
            ByteText.text("a\u{1B}[2J\r\u{7F}\u{202E}\n\tb".utf8),
            "a\u{FFFD}[2J\u{FFFD}\u{FFFD}\u{FFFD}\n\tb")
        XCTAssertEqual(ByteText.text("👩\u{200D}💻".utf8), "👩\u{200D}💻")
    }
}
