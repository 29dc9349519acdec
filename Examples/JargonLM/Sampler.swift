import Foundation

/// Chooses the next byte from scores.
///
/// A temperature of 0 takes the best score, the lowest byte where several are best. Otherwise scores are divided by the
/// temperature, and a byte is drawn from the likeliest ones that together have a probability of at least `topP`.
/// The same seed draws the same bytes.
public struct Sampler: Sendable {
    public var temperature: Double
    public var topP: Double
    private var state: UInt64

    /// Throws ``ModelError`` for a temperature that is negative or no number, and for a `topP` outside of 0...1.
    public init(temperature: Double = 0.7, topP: Double = 0.95, seed: UInt64 = 1) throws(ModelError) {
        guard temperature >= 0, temperature.isFinite else {
            throw ModelError(
                code: .invalidArgument, what: "the temperature cannot be used", got: "\(temperature)",
                expected: "0 or more", fix: "Use 0 for the best byte each time, 1 for the model's own odds.")
        }
        guard topP > 0, topP <= 1 else {
            throw ModelError(
                code: .invalidArgument, what: "topP is no part of all bytes", got: "\(topP)",
                expected: "more than 0, at most 1", fix: "Use 1 to draw from all bytes.")
        }
        self.temperature = temperature
        self.topP = topP
        state = seed
    }

    /// Always the best score.
    public static let greedy = Sampler()

    private init() {
        temperature = 0
        topP = 1
        state = 0
    }

    public mutating func choose(_ logits: [Float]) -> UInt8 {
        let best = logits.indices.max { logits[$0] < logits[$1] || (logits[$0] == logits[$1] && $0 > $1) } ?? 0
        guard temperature > 0 else { return UInt8(clamping: best) }
        let odds = logits.map { exp(Double($0 - logits[best]) / temperature) }
        let order = odds.indices.sorted { odds[$0] == odds[$1] ? $0 < $1 : odds[$0] > odds[$1] }
        let all = odds.reduce(0, +)
        var kept = 0.0
        var count = 0
        while count < order.count, kept < topP * all || count == 0 {
            kept += odds[order[count]]
            count += 1
        }
        var left = uniform() * kept
        for index in order.prefix(count) {
            left -= odds[index]
            if left < 0 { return UInt8(clamping: index) }
        }
        return UInt8(clamping: order[count - 1])
    }

    /// A number from 0 up to 1, of SplitMix64.
    private mutating func uniform() -> Double {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        bits ^= bits >> 31
        return Double(bits >> 11) * 0x1p-53
    }
}
