import Foundation
import MLXNativeKernels
import XCTest

@testable import JargonLM

/// The state and actions of an app, without its views.
@MainActor
final class WriterModelTests: XCTestCase {
    private nonisolated static let sizes = Configuration(
        width: 32, layers: 2, heads: 4, kvHeads: 2, headDim: 32, hidden: 48, window: 8, context: 40)

    private func model() -> WriterModel {
        WriterModel(source: { (try randomModel(Self.sizes), try bestDevice()) })
    }

    private func write(_ model: WriterModel) async {
        model.start()
        await model.settled()
    }

    func testWritesUntilTheContextIsFull() async {
        let model = model()
        XCTAssertEqual(model.phase, .idle)
        XCTAssertEqual(model.status, "Ready")
        XCTAssert(model.canStart && !model.canStop && !model.canContinue)
        model.prompt = "abc"
        model.start()
        XCTAssertEqual(model.phase, .loading)
        XCTAssertFalse(model.canStart)
        await model.settled()
        XCTAssertEqual(model.phase, .finished)
        XCTAssertEqual(model.status, "The context of 40 tokens is full")
        XCTAssert(model.text.hasPrefix("abc"), model.text)
        XCTAssertEqual(model.position, 40)
        XCTAssertEqual(model.context, 40)
        XCTAssertFalse(model.deviceName.isEmpty)
        XCTAssertGreaterThan(model.tokensPerSecond, 0)
        XCTAssertEqual(model.cacheFraction, 80 / 111, accuracy: 1e-12, "40 of 71 slots, and 40 of 40")
        XCTAssertEqual(model.slots.compactMap { $0 }.sorted(), Array(0..<40))
        XCTAssertEqual(model.attention.map(\.id), Array(0..<40))
        XCTAssertEqual(model.attention.prefix(3).map(\.character), ["a", "b", "c"])
        XCTAssertEqual(model.attention.map(\.weight).max(), 1)
    }

    func testTheSeedDecidesTheTextAndEveryStartHasAnother() async {
        let (model, other) = (model(), model())
        for each in [model, other] {
            each.seed = 4
            await write(each)
        }
        let first = model.text
        XCTAssertEqual(other.text, first)
        await write(model)
        XCTAssertEqual(model.seed, 6)
        XCTAssertNotEqual(model.text, first)
    }

    /// A text uses the options at its start, and all texts share one loaded model.
    func testStartUsesTheOptionsAndLoadsOnce() async {
        let loads = Counter()
        let model = WriterModel(source: {
            loads.add()
            return (try randomModel(Self.sizes), try bestDevice())
        })
        model.prompt = "taken"
        model.start()
        model.stop()
        model.start()
        model.prompt = "later"
        await model.settled()
        XCTAssert(model.text.hasPrefix("taken"), model.text)
        await write(model)
        XCTAssert(model.text.hasPrefix("later"), model.text)
        XCTAssertEqual(loads.count, 1)
    }

    func testStopsAndContinuesWithoutDifference() async throws {
        let straight = model()
        await write(straight)

        let model = model()
        model.start()
        while model.position < 5 { await Task.yield() }
        model.stop()
        XCTAssertEqual(model.phase, .stopped)
        await model.settled()
        let position = model.position
        XCTAssertLessThan(position, 40, "stopping did nothing")
        XCTAssertEqual(model.phase, .stopped)
        XCTAssertEqual(model.status, "Stopped at position \(position) of 40")
        XCTAssert(model.canContinue && model.canStart && !model.canStop)
        model.continue()
        model.stop()
        await model.settled()
        XCTAssertEqual(model.phase, .stopped, "stopped before it went on")
        XCTAssertEqual(model.position, position)
        model.continue()
        await model.settled()
        XCTAssertEqual(model.phase, .finished)
        XCTAssertEqual(model.text, straight.text)
    }

    func testAnotherStartAbandonsTheOldText() async {
        let model = model()
        model.prompt = "first "
        model.start()
        while model.position < 3 { await Task.yield() }
        model.stop()
        model.prompt = "second"
        model.storage = .quantized(.bits4)
        await write(model)
        XCTAssert(model.text.hasPrefix("second"), model.text)
        XCTAssertEqual(model.position, 40)
        XCTAssertEqual(model.phase, .finished)
    }

    func testStopsWhileLoading() async {
        let model = model()
        model.start()
        XCTAssert(model.canStop)
        model.stop()
        XCTAssertEqual(model.phase, .idle)
        await model.settled()
        XCTAssertEqual(model.phase, .idle)
        XCTAssertEqual(model.position, 0)
        await write(model)
        XCTAssertEqual(model.phase, .finished)
    }

    func testReportsFailures() async {
        let nowhere = WriterModel(source: {
            throw ModelError(code: .fileNotFound, what: "no model", got: "none", expected: "one", fix: "Find it.")
        })
        await write(nowhere)
        XCTAssertEqual(nowhere.phase, .failed("no model (got none, expected one). Find it."))
        XCTAssertEqual(nowhere.status, "no model (got none, expected one). Find it.")
        XCTAssert(nowhere.canStart)

        let long = model()
        long.prompt = String(repeating: "x", count: 40)
        await write(long)
        guard case .failed(let why) = long.phase else { return XCTFail("\(long.phase)") }
        XCTAssert(why.contains("no room to write"), why)

        let hot = model()
        hot.temperature = .nan
        await write(hot)
        guard case .failed = hot.phase else { return XCTFail("\(hot.phase)") }
    }

    /// Some texts of random weights end within a character: the bytes held back are shown at the end.
    func testATextThatEndsWithinACharacterIsShownCompletely() async throws {
        let model = try randomModel(Self.sizes)
        var cut = 0
        for seed in 1...16 as ClosedRange<UInt64> {
            let writer = try Writer(
                model, storage: .f16, sampler: Sampler(temperature: 10, topP: 1, seed: seed), device: bestDevice(),
                prompt: "abc")
            var shown = ""
            var tokens: [UInt8] = []
            while let update = try await writer.next() {
                shown += update.text
                tokens = update.attended.map(\.token)
            }
            XCTAssertEqual(shown, ByteText.text(tokens))
            cut += (0xC2...0xF4).contains(tokens.last ?? 0) ? 1 : 0
        }
        XCTAssertGreaterThan(cut, 0, "no text ends so; try other seeds")
    }

    func testInvalidBytesHaveASymbol() async {
        let model = model()
        model.prompt = "é\n"
        model.start()
        while model.position < 3 { await Task.yield() }
        model.stop()
        await model.settled()
        XCTAssertEqual(model.attention.prefix(3).map(\.character), ["\u{FFFD}", "\u{FFFD}", "⏎"])
    }
}

private final class Counter: @unchecked Sendable {
    private let lock = NSLock()
    private var value = 0  // guarded by the lock

    func add() { lock.withLock { value += 1 } }
    var count: Int { lock.withLock { value } }
}
