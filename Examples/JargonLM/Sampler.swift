import Foundation

/// Chooses the next byte from scores.
///
/// A temperature of 0 takes the highest score, and the lowest byte in a tie. Otherwise the sampler divides the scores
/// by the temperature, and draws from the most likely bytes whose total probability is at least `topP`. The same seed
/// draws the same bytes.
public struct Sampler: Sendable {
    /// The divisor of the scores; 0 always takes the highest score.
    public let temperature: Double
    /// The minimum total probability of the bytes to draw from.
    public let topP: Double
    private var state: UInt64

    /// Throws ``ModelError`` for a negative or NaN temperature, and for a `topP` outside 0...1.
    public init(temperature: Double = 0.7, topP: Double = 0.95, seed: UInt64 = 1) throws(ModelError) {
        guard temperature >= 0, temperature.isFinite else {
            throw ModelError(
                code: .invalidArgument, what: "the temperature is out of range", got: "\(temperature)",
                expected: "0 or more", fix: "Use 0 for the most likely byte, 1 for the model's distribution.")
        }
        guard topP > 0, topP <= 1 else {
            throw ModelError(
                code: .invalidArgument, what: "topP is out of range", got: "\(topP)",
                expected: "more than 0, at most 1", fix: "Use 1 to draw from all bytes.")
        }
        self.temperature = temperature
        self.topP = topP
        state = seed
    }

    /// Always takes the highest score.
    public static let greedy = Sampler()

    private init() {
        temperature = 0
        topP = 1
        state = 0
    }

    /// Chooses a byte given one score per byte. Never chooses a byte whose score is NaN or infinite; returns 0 if all
    /// are.
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

    /// A number in 0..<1 from SplitMix64.
    private mutating func uniform() -> Double {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        bits ^= bits >> 31
        return Double(bits >> 11) * 0x1p-53
    }
}
