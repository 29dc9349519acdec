import Foundation

/// Texts and drawings for views, computed here so that views contain no logic.
extension WriterModel {
    /// The range of the temperature slider.
    public nonisolated static let temperatures = 0.0...1.5

    /// "0.7"
    public var temperatureText: String { String(format: "%.1f", temperature) }
    public var deviceText: String { deviceName.isEmpty ? "not loaded yet" : deviceName }
    /// "123 tokens/s"
    public var speedText: String { tokensPerSecond > 0 ? String(format: "%.0f tokens/s", tokensPerSecond) : "none yet" }
    /// "300 of 1024"
    public var positionText: String { "\(position) of \(context)" }
    /// "1.21 MB of 8.40 MB"
    public var cacheText: String {
        cacheBytes > 0 ? "\(bytesText(bytesInUse)) of \(bytesText(cacheBytes))" : "none yet"
    }

    /// The slots of the ring in order; all are empty before the first text.
    public var ring: [RingSlot] {
        let slots = slots.isEmpty ? Array(repeating: nil, count: Configuration.jargonLM.capacity(ofLayer: 0)) : slots
        let newest = slots.compactMap { $0 }.max()
        return slots.enumerated().map { index, held in
            RingSlot(id: index, count: slots.count, content: .of(held, newest: newest, count: slots.count))
        }
    }

    /// "319 of 319 slots, positions 237 to 555"
    public var ringText: String {
        let held = slots.compactMap { $0 }
        guard let first = held.min(), let last = held.max() else { return "no slots in use" }
        let positions = first == last ? "position \(first)" : "positions \(first) to \(last)"
        return "\(held.count) of \(slots.count) slots, \(positions)"
    }

    /// The token with the highest weight: `mostly on "k", 12 tokens back`.
    public var attentionText: String {
        guard let heaviest = attention.max(by: { $0.weight < $1.weight }), heaviest.weight > 0 else {
            return "none yet"
        }
        let back = position - 1 - heaviest.id
        let place = back == 0 ? "the newest token" : back == 1 ? "1 token back" : "\(back) tokens back"
        return "mostly on \"\(heaviest.character)\", \(place)"
    }
}

extension WriterModel.WeighedToken {
    /// The opacity of the background. The square root makes small weights visible, and text stays legible on the
    /// largest.
    public var shade: Double { 0.6 * weight.squareRoot() }
    /// Whether the weight is at least half the largest.
    public var isHeavy: Bool { weight >= 0.5 }
}

/// One slot of a cache that is drawn as a ring: slot 0 begins at the top, and the others follow clockwise.
public struct RingSlot: Identifiable, Equatable, Sendable {
    public enum Content: Equatable, Sendable {
        case empty
        /// The opacity of the slot: nearly 1 for a new position, low for one that is about to be overwritten.
        case held(shade: Double)
        case newest

        static func of(_ position: Int?, newest: Int?, count: Int) -> Content {
            guard let position, let newest else { return .empty }
            let age = min(max(newest - position, 0), count)
            return age == 0 ? .newest : .held(shade: 1 - 0.85 * Double(age) / Double(count))
        }
    }

    public let id: Int
    /// The number of slots in the ring.
    public let count: Int
    public let content: Content

    /// The corners of the slot in a drawing of this size, whose y axis points down.
    public func corners(in size: CGSize) -> [CGPoint] {
        let outer = min(size.width, size.height) / 2
        // Leaves a gap of a tenth of a slot between neighbors.
        let edges = [Double(id) + 0.05, Double(id) + 0.95].map { $0 / Double(max(count, 1)) * 2 * .pi }
        func point(_ angle: Double, _ radius: Double) -> CGPoint {
            CGPoint(x: size.width / 2 + radius * sin(angle), y: size.height / 2 - radius * cos(angle))
        }
        let inner = outer * 0.72
        return [point(edges[0], outer), point(edges[1], outer), point(edges[1], inner), point(edges[0], inner)]
    }
}
