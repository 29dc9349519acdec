import Foundation
import MLXNativeKernels
import MLXNativeKernelsHost
import XCTest

@testable import JargonLM

/// The model with the kernels, compared with results computed in double precision without them.
final class PassageTests: XCTestCase {
    override class func setUp() { registerHostDevice() }

    private struct Reference: Decodable {
        let bitsPerByte: Double
        let firstBits: [Double]
        let likeliest: [UInt8]
        let lastLogits: [Double]

        enum CodingKeys: String, CodingKey {
            case bitsPerByte = "passage_bits_per_byte"
            case firstBits = "first_bits"
            case likeliest = "argmax"
            case lastLogits = "logits_pos_1023_first16"
        }
    }

    /// Storages, and the maximum distance of bits per byte from the reference, above or below. The Host device measures
    /// 0.00000, 0.00002, 0.0021, 0.0006 and 0.0011. The last two run in `make check`, because a storage takes seconds.
    /// The demo measures the others.
    private static let expectations: [(storage: StorageChoice, bitsPerByte: Double)] = {
        let quick: [(StorageChoice, Double)] = [(.f32, 1e-5), (.f16, 1e-4), (.quantized(.bits4), 0.01)]
        let slow: [(StorageChoice, Double)] = [(.quantized(.bits8), 0.001), (.quantized(.bits6), 0.003)]
        return quick + (ProcessInfo.processInfo.environment["MNK_TEST_FULL"] == nil ? [] : slow)
    }()

    private var passage: [UInt8] {
        get throws { Array(try Data(contentsOf: modelFolder().appendingPathComponent("passage.txt"))) }
    }
    private var reference: Reference {
        get throws {
            try JSONDecoder().decode(
                Reference.self, from: Data(contentsOf: modelFolder().appendingPathComponent("reference.json")))
        }
    }

    /// A single token leaves a second worker mostly idle, so two storages are read concurrently.
    func testEveryStoragePredictsThePassage() throws {
        let model = try LanguageModel.bundled()
        let passage = try passage
        let reference = try reference
        let results = Results()
        let expectations = Self.expectations
        DispatchQueue.concurrentPerform(iterations: expectations.count) { index in
            results.add(
                Result {
                    var last: [Float] = []
                    let score = try PassageScore(
                        of: passage, by: model, storage: expectations[index].storage,
                        on: KernelDevice.host(HostOptions(workers: 1)), measuresOps: false,
                        observe: { last = $0.newestLogits })
                    return (score, last)
                }, at: index)
        }
        for (index, expectation) in expectations.enumerated() {
            let name = expectation.storage.name
            let (score, last) = try XCTUnwrap(results.all[index]).get()
            print("\(name): \(score.bitsPerByte) bits per byte, \(score.bitsPerByte - reference.bitsPerByte) more")
            XCTAssertEqual(score.bits.count, 1024)
            XCTAssertEqual(score.bitsPerByte, reference.bitsPerByte, accuracy: expectation.bitsPerByte, name)
            guard !expectation.storage.isQuantized else { continue }
            XCTAssertEqual(Array(score.likeliest.prefix(64)), reference.likeliest, name)
            XCTAssertEqual(reference.firstBits.count, 64)
            XCTAssertEqual(reference.lastLogits.count, 16)
            XCTAssertEqual(last.count, 256)
            for (got, expected) in zip(score.bits, reference.firstBits) {
                XCTAssertEqual(got, expected, accuracy: 0.01, name)
            }
            for (got, expected) in zip(last, reference.lastLogits) {
                XCTAssertEqual(Double(got), expected, accuracy: 0.01, name)
            }
        }
    }

    /// Every device here, with its default splits and rings.
    func testEveryDevicePredictsTheBeginning() throws {
        let model = try LanguageModel.bundled()
        let reference = try reference
        for device in KernelDevice.all {
            let score = try PassageScore(of: Array(passage.prefix(65)), by: model, storage: .f16, on: device)
            XCTAssertEqual(score.likeliest, reference.likeliest, device.name)
            XCTAssertEqual(score.costs.tokens, 64)
            XCTAssertEqual(score.costs.submissions, 64 * 4)
        }
    }

    /// Differences, errors and the baseline, over a prefix that is long enough to fill a ring.
    func testScoresAreCompared() throws {
        let model = try LanguageModel.bundled()
        let beginning = Array(try passage.prefix(300))
        let scores = try [.quantized(.bits4), .f16, .quantized(.bits8)].map { (storage: StorageChoice) in
            try PassageScore(of: beginning, by: model, storage: storage, on: bestDevice(), measuresOps: false)
        }
        let base = try XCTUnwrap(PassageScore.base(of: scores))
        XCTAssertEqual(base.storage.name, StorageChoice.f16.name)
        XCTAssertNil(PassageScore.base(of: []))
        XCTAssertEqual(base.difference(from: base).mean, 0)
        XCTAssertEqual(base.difference(from: base).standardError, 0)

        // Half the mean squared difference of all pairs also equals the variance.
        let over = scores[0].difference(from: base)
        let differences = zip(scores[0].bits, base.bits).map { $0 - $1 }
        let count = Double(differences.count)
        var pairs = 0.0
        for one in differences { for other in differences { pairs += (one - other) * (one - other) } }
        XCTAssertEqual(over.mean, scores[0].bitsPerByte - base.bitsPerByte, accuracy: 1e-12)
        XCTAssertEqual(over.standardError, (pairs / 2 / count / (count - 1) / count).squareRoot(), accuracy: 1e-12)

        // The codec's errors for normal numbers are 0.0095 and 0.00005; f16 rounds to 11 bits.
        XCTAssertEqual(scores[0].error, 0.0095, accuracy: 0.002)
        XCTAssertEqual(scores[2].error, 0.00005, accuracy: 0.00002)
        XCTAssertGreaterThan(base.error, 1e-9)
        XCTAssertLessThan(base.error, 1e-7)
    }

    func testRefusesAPassageOfOneByte() throws {
        let model = try LanguageModel.bundled()
        assertThrows(.invalidArgument, try PassageScore(of: [1], by: model, storage: .f16, on: bestDevice()))
    }
}

/// Several threads fill this.
private final class Results: @unchecked Sendable {
    typealias Outcome = Result<(PassageScore, [Float]), any Error>
    private let lock = NSLock()
    private var outcomes: [Int: Outcome] = [:]  // guarded by the lock

    func add(_ outcome: Outcome, at index: Int) { lock.withLock { outcomes[index] = outcome } }
    var all: [Int: Outcome] { lock.withLock { outcomes } }
}
