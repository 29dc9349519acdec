// Generated from Sources/API by generate.py: change the description instead.
#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension RotaryEmbedding {
    /// The partner of an element, except with interleaved pairs, which have one of their own.
    public enum Pairing: Sendable, Hashable, CaseIterable {
        /// Half of the rotated part away, as in MLX, ggml and transformers.
        case halfOfRopeDim
        /// Half of the head away, as in mlx-native. It differs where the rotated part is less than the head.
        case halfOfHeadDim
        /// The next one: 2p and 2p + 1. With sections this is what GLM-4V has.
        case neighbors

        var code: mnk_rotary_embedding_pairing {
            switch self {
            case .halfOfRopeDim: .MNK_ROTARY_EMBEDDING_PAIRING_HALF_OF_ROPE_DIM
            case .halfOfHeadDim: .MNK_ROTARY_EMBEDDING_PAIRING_HALF_OF_HEAD_DIM
            case .neighbors: .MNK_ROTARY_EMBEDDING_PAIRING_NEIGHBORS
            }
        }
    }
}

extension RotaryEmbedding {
    /// Where pairs of imrope outside of all sections go.
    public enum OtherAxis: Sendable, Hashable, CaseIterable {
        /// To axis 0, time, as in transformers, with whose code these models were published.
        case axis0
        /// To axis 3, as in ggml and mlx-native. ggml's callers fill it with 0 for text: such pairs are then not
        /// rotated.
        case axis3

        var code: mnk_rotary_embedding_other_axis {
            switch self {
            case .axis0: .MNK_ROTARY_EMBEDDING_OTHER_AXIS_AXIS0
            case .axis3: .MNK_ROTARY_EMBEDDING_OTHER_AXIS_AXIS3
            }
        }
    }
}

extension RotaryEmbedding {
    /// Scales pairs that make fewer than ``betaSlow`` turns in the original context, keeps those that make more than
    /// ``betaFast`` turns, and blends between them. Multiplies the result by
    /// `attentionFactor * (1 + 0.1 ln(1 / scale))`.
    ///
    /// The `factor` of a model's configuration is `1 / scale`: pass ``RotaryEmbedding/scale`` as well. What
    /// transformers calls `attention_factor` is all of the product above. The call fails if ``betaFast`` is not greater
    /// than ``betaSlow``, or if the scale is greater than 1. With an ``extensionFactor`` of 0, neither is required;
    /// what remains is ``attentionFactor``, which is what LongRoPE has beside its ``RotaryEmbedding/frequencyFactors``.
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

        func descriptor(of owner: String = "", op: String) throws(KernelError) -> mnk_rotary_embedding_yarn {
            mnk_rotary_embedding_yarn(
                original_context: try UInt64(originalContext, "originalContext", of: owner, op: op),
                extension_factor: extensionFactor,
                attention_factor: attentionFactor,
                beta_fast: betaFast,
                beta_slow: betaSlow,
                keeps_fractions: !roundsCorners)
        }
    }
}
