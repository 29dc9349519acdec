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

    /// The partner of an element, except with ``Layout/interleavedPairs``, which has one of its own.
    public enum Pairing: Sendable, Hashable {
        /// Half of the rotated part away, as in MLX, ggml and transformers.
        case halfOfRopeDim
        /// Half of the head away, as in mlx-native. It differs where `ropeDim` is less than the head dim.
        case halfOfHeadDim
        /// The next one: 2p and 2p + 1. With sections this is what GLM-4V has.
        case neighbors
    }

    /// Where pairs of ``Layout/imrope(_:_:_:_:)`` outside of all sections go.
    public enum OtherAxis: Sendable, Hashable {
        /// To axis 0, time, as in transformers, with whose code these models were published.
        case axis0
        /// To axis 3, as in ggml and mlx-native. ggml's callers fill it with 0 for text: such pairs are then not
        /// rotated.
        case axis3
    }

    /// Scales pairs that make fewer than `betaSlow` turns in the original context, keeps those that make more than
    /// `betaFast` turns, and blends between them. Multiplies the result by `attentionFactor * (1 + 0.1 ln(1 / scale))`.
    ///
    /// The `factor` of a model's configuration is `1 / scale`: pass ``RotaryEmbedding/scale`` as well. What
    /// transformers calls `attention_factor` is all of the product above. The call throws if `betaFast` is not greater
    /// than `betaSlow`, or if the scale is greater than 1. With an `extensionFactor` of 0, neither is required; what
    /// remains is `attentionFactor`, which is what LongRoPE has beside its ``RotaryEmbedding/frequencyFactors``.
    public struct YaRN: Sendable, Hashable {
        /// Tokens of the context that the model was trained with.
        public var originalContext: Int
        /// Share of the blend, from 0 to 1; 0 scales every pair and omits the logarithm.
        public var extensionFactor: Float
        /// A factor of the result.
        public var attentionFactor: Float
        /// The number of turns from which a pair is kept.
        public var betaFast: Float
        /// The number of turns up to which a pair is scaled.
        public var betaSlow: Float
        /// Whether the pairs where the blend begins and ends are rounded; `false` is `"truncate": false` of a
        /// configuration.
        public var roundsCorners: Bool

        /// The numbers of a model's configuration.
        public init(
            originalContext: Int, extensionFactor: Float = 1, attentionFactor: Float = 1, betaFast: Float = 32,
            betaSlow: Float = 1, roundsCorners: Bool = true
        ) {
            self.originalContext = originalContext
            self.extensionFactor = extensionFactor
            self.attentionFactor = attentionFactor
            self.betaFast = betaFast
            self.betaSlow = betaSlow
            self.roundsCorners = roundsCorners
        }
    }

    /// Which elements make a pair, and which axis rotates it.
    public var layout: Layout
    /// The base of the frequencies.
    public var base: Double
    /// How many elements are rotated, at most 1024; `nil` means all of a head.
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
    /// In the types of the C API, but for the pointer to the factors.
    func descriptor(op: String) throws(KernelError) -> mnk_rotary_embedding {
        var rotary = mnk_rotary_embedding()
        rotary.layout = layout.code
        let sections = try numbers(layout.sections, as: UInt32.self, "a section", op: op)
        rotary.sections = (sections[0], sections[1], sections[2], sections[3])
        rotary.base = base
        rotary.has_rope_dim = ropeDim != nil
        rotary.rope_dim = try UInt64(ropeDim ?? 0, "ropeDim", op: op)
        rotary.pairing = pairing.code
        rotary.other_axis = otherAxis == .axis0 ? .MNK_OTHER_AXIS_0 : .MNK_OTHER_AXIS_3
        rotary.scale = scale
        rotary.has_yarn = yarn != nil
        if let yarn {
            rotary.yarn = mnk_yarn(
                original_context: try UInt64(yarn.originalContext, "originalContext", op: op),
                extension_factor: yarn.extensionFactor, attention_factor: yarn.attentionFactor,
                beta_fast: yarn.betaFast, beta_slow: yarn.betaSlow, keeps_fractions: !yarn.roundsCorners)
        }
        rotary.is_inverse = isInverse
        return rotary
    }
}

extension RotaryEmbedding.Pairing {
    fileprivate var code: mnk_rotary_pairing {
        switch self {
        case .halfOfRopeDim: .MNK_HALF_OF_ROPE_DIM
        case .halfOfHeadDim: .MNK_HALF_OF_HEAD_DIM
        case .neighbors: .MNK_NEIGHBORS
        }
    }
}

extension RotaryEmbedding.Layout {
    fileprivate var code: mnk_rotary_layout {
        switch self {
        case .interleavedPairs: .MNK_INTERLEAVED_PAIRS
        case .halfSplit: .MNK_HALF_SPLIT
        case .mrope: .MNK_MROPE
        case .imrope: .MNK_IMROPE
        case .vision: .MNK_VISION
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
