#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// How positions rotate the pairs of a vector.
///
/// Pair p, with elements a and b, becomes
///
///     out[a] = m (x[a] cos t - x[b] sin t)      t = position[axis(p)] * frequency(p)
///     out[b] = m (x[a] sin t + x[b] cos t)      for p < ropeDim / 2; all other elements are kept
///
/// with frequency(p) = scale * base^(-2p / ropeDim) / frequencyFactors[p] and m = 1, or both as ``YaRN`` defines.
///
/// ```swift
/// let llama = RotaryEmbedding(base: 500_000)
/// let qwen3VL = RotaryEmbedding(layout: .imrope(24, 20, 20), base: 5e6)
/// let longer = RotaryEmbedding(base: 1e6, scale: 0.25, yarn: .init(originalContext: 32768))
/// ```
public struct RotaryEmbedding: Sendable, Hashable {
    /// Which elements make a pair, and which axis of positions rotates it.
    public enum Layout: Sendable, Hashable {
        /// Elements 2p and 2p + 1.
        case interleavedPairs
        /// Elements p and p + half. All layouts that follow do the same unless ``RotaryEmbedding/pairing`` says
        /// otherwise.
        case halfSplit
        /// The given number of pairs of each axis, one axis after another, and again from the first in rounds of their
        /// sum. Pairs beyond the rotated part are not used, as in ggml: check that the sum is half the rotated part.
        case mrope(Int, Int, Int, Int = 0)
        /// Axes take turns: p mod 3 is the axis while p is less than three times its section; other pairs go to
        /// ``RotaryEmbedding/otherAxis``. The fourth number only lengthens a round.
        case imrope(Int, Int, Int, Int = 0)
        /// The given number of pairs of y (axis 0), then of x (axis 1). Further axes are not used. Each axis counts its pairs q from 0 and rotates them by
        /// `base^(-2q / (headDim / 2))`.
        case vision(Int, Int)

        /// The layout under the number of ggml's rope type: 0, 2, 8 (mrope), 24 (vision) or 40 (imrope).
        ///
        /// Vision reads two sections; ggml's callers pass four.
        ///
        /// - Throws: ``KernelError`` for another number, more than four sections, or sections of a layout without them.
        public init(mode: Int, sections: [Int] = []) throws(KernelError) {
            let s = sections + [Int](repeating: 0, count: max(0, 4 - sections.count))
            let isEmpty = sections.allSatisfy { $0 == 0 }
            switch mode {
            case 0 where isEmpty: self = .interleavedPairs
            case 2 where isEmpty: self = .halfSplit
            case 8 where s.count == 4: self = .mrope(s[0], s[1], s[2], s[3])
            case 24 where s.count == 4: self = .vision(s[0], s[1])
            case 40 where s.count == 4: self = .imrope(s[0], s[1], s[2], s[3])
            default:
                throw .invalid(
                    op: "RotaryEmbedding", what: "the mode is not known", got: "mode \(mode) with sections \(sections)",
                    expected: "0 or 2 without sections, or 8, 24 or 40 with up to four",
                    fix: "Pass the model's rope type and sections.")
            }
        }
    }

    /// Which elements make a pair, and which axis rotates it.
    public var layout: Layout
    /// The base of the frequencies.
    public var base: Double
    /// How many elements are rotated, at most 1024; `nil` or 0 means all of a head.
    public var ropeDim: Int?
    /// The partner of an element.
    public var pairing: Pairing
    /// Which axis rotates pairs of imrope outside all sections.
    public var otherAxis: OtherAxis
    /// Multiplies positions: 0.25 for a context four times as long. With ``yarn``, at most 1.
    public var scale: Double
    /// A divisor for each pair's frequency; with infinity, a pair is not rotated. Empty: none.
    ///
    /// Llama 3's scaling comes as such factors. A model's own table of periods, as MLX takes it, is this with a base of
    /// 1.
    public var frequencyFactors: [Float]
    /// Scales some pairs more than others.
    public var yarn: YaRN?
    /// Whether to undo the rotation.
    public var isInverse = false

    /// An embedding. It is checked when it is used.
    public init(
        layout: Layout = .halfSplit, base: Double = 10000, ropeDim: Int? = nil, pairing: Pairing = .halfOfRopeDim,
        otherAxis: OtherAxis = .axis0, scale: Double = 1, frequencyFactors: [Float] = [], yarn: YaRN? = nil
    ) {
        self.layout = layout
        self.base = base
        self.ropeDim = ropeDim
        self.pairing = pairing
        self.otherAxis = otherAxis
        self.scale = scale
        self.frequencyFactors = frequencyFactors
        self.yarn = yarn
    }

    /// The embedding that undoes this one.
    public var inverse: RotaryEmbedding {
        var other = self
        other.isInverse.toggle()
        return other
    }
}

extension RotaryEmbedding {
    func descriptor(
        of owner: String = "", op: String, in memory: CallMemory
    ) throws(KernelError) -> mnk_rotary_embedding {
        let sections = try numbers(layout.sections, as: UInt32.self, "a section", op: op)
        return mnk_rotary_embedding(
            layout: layout.code, sections: (sections[0], sections[1], sections[2], sections[3]), base: base,
            rope_dim: try UInt64(ropeDim ?? 0, "ropeDim", op: op), pairing: pairing.code, other_axis: otherAxis.code,
            scale: scale, frequency_factors: memory.keep(frequencyFactors),
            frequency_factor_count: frequencyFactors.count, has_yarn: yarn != nil,
            yarn: try yarn?.descriptor(op: op) ?? mnk_rotary_embedding_yarn(), is_inverse: isInverse)
    }
}

extension RotaryEmbedding.Layout {
    fileprivate var code: mnk_rotary_embedding_layout {
        switch self {
        case .interleavedPairs: .MNK_ROTARY_EMBEDDING_LAYOUT_INTERLEAVED_PAIRS
        case .halfSplit: .MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT
        case .mrope: .MNK_ROTARY_EMBEDDING_LAYOUT_MROPE
        case .imrope: .MNK_ROTARY_EMBEDDING_LAYOUT_IMROPE
        case .vision: .MNK_ROTARY_EMBEDDING_LAYOUT_VISION
        }
    }

    fileprivate var sections: [Int] {
        switch self {
        case .interleavedPairs, .halfSplit: [0, 0, 0, 0]
        case .mrope(let a, let b, let c, let d), .imrope(let a, let b, let c, let d): [a, b, c, d]
        case .vision(let a, let b): [a, b, 0, 0]
        }
    }
}
