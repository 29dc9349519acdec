import Foundation

/// Chooses the next byte from scores.
///
/// A temperature of 0 takes the best score, the lowest byte where several are best. Otherwise scores are divided by the
/// temperature, and a byte is drawn from the likeliest ones that together have a probability of at least `topP`.
/// The same seed draws the same bytes.
public struct Sampler: Sendable {
    /// 0 for the best score each time; scores are divided by any other.
    public let temperature: Double
    /// The probability that the bytes drawn from have together, at least.
    public let topP: Double
    private var state: UInt64

    /// Throws ``ModelError`` for a temperature that is negative or NaN, and for a `topP` outside of 0...1.
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

    /// A byte of these scores, one for each byte. Scores that are no numbers are never chosen; 0 where all are so.
    public mutating func choose(_ logits: [Float]) -> UInt8 {
        let candidates = logits.indices.prefix(256).filter { logits[$0].isFinite }
        guard let best = candidates.max(by: { logits[$0] < logits[$1] || (logits[$0] == logits[$1] && $0 > $1) })
        else { return 0 }
        guard temperature > 0 else { return UInt8(clamping: best) }
        let odds = candidates.map { (byte: $0, odds: exp(Double(logits[$0] - logits[best]) / temperature)) }
            .sorted { $0.odds == $1.odds ? $0.byte < $1.byte : $0.odds > $1.odds }
        let all = odds.reduce(0) { $0 + $1.odds }
        var kept = 0.0
        var count = 0
        while count < odds.count, kept < topP * all || count == 0 {
            kept += odds[count].odds
            count += 1
        }
        var left = uniform() * kept
        for candidate in odds.prefix(count) {
            left -= candidate.odds
            if left < 0 { return UInt8(clamping: candidate.byte) }
        }
        return UInt8(clamping: odds[count - 1].byte)
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
