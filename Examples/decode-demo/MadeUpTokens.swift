/// Keys and values that stand in for a model's: a pure function of seed and position, so that what was stored can
/// be worked out again. All numbers are exact in f32, f16 and bf16.
struct MadeUpTokens {
    let seed: UInt64
    let heads: Int
    let headDim: Int

    enum Part: UInt64, CaseIterable { case keys, values }

    /// Element 0 of every key carries the position, modulo 256.
    static func mark(_ position: Int) -> Float { Float(position % 256) }

    func row(_ part: Part, position: Int, head: Int) -> [Float] {
        var state = mixed(seed ^ mixed(UInt64(position)) ^ mixed(UInt64(head) << 32 | part.rawValue))
        var row = (0..<headDim).map { _ in
            state = mixed(state)
            return Float(Int(state % 129) - 64) / 64
        }
        if part == .keys { row[0] = Self.mark(position) }
        return row
    }

    /// One token: `[heads, headDim]`.
    func token(_ part: Part, position: Int) -> [Float] {
        (0..<heads).flatMap { row(part, position: position, head: $0) }
    }

    /// A bijection that spreads neighboring numbers far apart.
    private func mixed(_ number: UInt64) -> UInt64 {
        var bits = number &+ 0x9E37_79B9_7F4A_7C15
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        return bits ^ (bits >> 31)
    }
}
