import Foundation
import MLXNativeKernels
import XCTest

@testable import JargonLM

/// Texts and drawings for views.
@MainActor
final class WriterModelDisplayTests: XCTestCase {
    private nonisolated static let sizes = Configuration(
        width: 32, layers: 2, heads: 4, kvHeads: 2, headDim: 32, hidden: 48, window: 8, context: 80)

    func testTextsBeforeAndAfterWriting() async {
        let model = WriterModel(source: { (try randomModel(Self.sizes), try bestDevice()) })
        XCTAssertEqual(model.deviceText, "not loaded yet")
        XCTAssertEqual(model.speedText, "none yet")
        XCTAssertEqual(model.cacheText, "none yet")
        XCTAssertEqual(model.ringText, "no slots in use")
        XCTAssertEqual(model.attentionText, "none yet")
        XCTAssertEqual(model.temperatureText, "0.7")
        XCTAssertEqual(model.ring.count, 256 + 63)
        XCTAssert(model.ring.allSatisfy { $0.content == .empty })

        model.prompt = "abcdefghi"
        model.start()
        await model.settled()
        XCTAssertEqual(model.positionText, "80 of 80")
        XCTAssertEqual(model.cacheText, "38.7 KB of 38.7 KB")
        XCTAssertEqual(model.ringText, "71 of 71 slots, positions 9 to 79")
        XCTAssert(model.speedText.hasSuffix(" tokens/s"), model.speedText)
        XCTAssert(model.attentionText.hasPrefix("mostly on \""), model.attentionText)
        XCTAssertEqual(model.ring.map(\.id), Array(0..<71))
        XCTAssertEqual(model.ring.firstIndex { $0.content == .newest }, 8, "position 79 is in slot 79 % 71")
        let shades = model.ring.compactMap { slot -> Double? in
            if case .held(let shade) = slot.content { shade } else { nil }
        }
        XCTAssertEqual(shades.count, 70)
        XCTAssertEqual(shades[7], 1 - 0.85 / 71, accuracy: 1e-12, "one step old")
        XCTAssertEqual(shades[8], 1 - 0.85 * 70 / 71, accuracy: 1e-12, "the oldest")
    }

    func testSlotsFormARing() {
        let size = CGSize(width: 200, height: 100)
        let slots = (0..<4).map { RingSlot(id: $0, count: 4, content: .empty) }
        for slot in slots {
            let radii = slot.corners(in: size).map { hypot($0.x - 100, $0.y - 50) }
            for (radius, expected) in zip(radii, [50.0, 50, 36, 36]) {
                XCTAssertEqual(radius, expected, accuracy: 1e-9)
            }
        }
        // The first quarter is at the top right.
        XCTAssert(slots[0].corners(in: size).allSatisfy { $0.x > 100 && $0.y < 50 })
        XCTAssert(slots[2].corners(in: size).allSatisfy { $0.x < 100 && $0.y > 50 })
    }

    func testWeightsHaveShades() {
        let tokens = [0, 0.25, 1].map { WriterModel.WeighedToken(id: 0, character: "a", weight: $0) }
        XCTAssertEqual(tokens.map(\.shade), [0, 0.3, 0.6])
        XCTAssertEqual(tokens.map(\.isHeavy), [false, false, true])
    }
}
