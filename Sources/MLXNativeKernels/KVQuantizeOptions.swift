#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// The scale that ``KVCodec/Name/turbo`` stores for a vector r whose codes represent the codebook values c.
public enum KVScaleRule: Sendable, Hashable, CaseIterable {
    /// `<r, r> / <r, c>`: keeps the vector's component along itself, so that scores do not shrink.
    case unbiased
    /// `<r, c> / <c, c>`: minimizes the error of the vector.
    case leastSquares

    fileprivate var code: mnk_kv_scale_rule { self == .unbiased ? .MNK_SCALE_UNBIASED : .MNK_SCALE_LEAST_SQUARES }
}

/// What is stored for a vector that holds a NaN or an infinity.
public enum KVNonFinite: Sendable, Hashable, CaseIterable {
    /// A scale that is NaN, so that what is computed with the vector is NaN.
    case propagate
    /// Zero.
    case zero

    fileprivate var code: mnk_kv_non_finite {
        self == .zero ? .MNK_NON_FINITE_ZERO : .MNK_NON_FINITE_PROPAGATE
    }
}

/// How vectors are quantized where the format allows a choice. Readers do not need it.
///
/// ```swift
/// let thorough = KVQuantizeOptions(candidates: .seventeen)
/// ```
public struct KVQuantizeOptions: Sendable, Hashable {
    /// Sizes of a vector that ``KVCodec/Name/turbo`` tries, to keep the codes whose direction is nearest to the
    /// vector's.
    public enum Candidates: Int, Sendable, Hashable, CaseIterable {
        /// Only the vector's root mean square.
        case one = 1
        /// Five sizes.
        case five = 5
        /// Seventeen sizes.
        case seventeen = 17
    }

    /// Sizes that are tried.
    public var candidates: Candidates
    /// The scale of a key.
    public var keyScale: KVScaleRule
    /// The scale of a value.
    public var valueScale: KVScaleRule
    /// What is stored for a vector that holds a NaN or an infinity (<doc:NonFiniteNumbers>).
    public var nonFinite: KVNonFinite

    /// Options with these values.
    public init(
        candidates: Candidates = .five, keyScale: KVScaleRule = .unbiased, valueScale: KVScaleRule = .leastSquares,
        nonFinite: KVNonFinite = .propagate
    ) {
        self.candidates = candidates
        self.keyScale = keyScale
        self.valueScale = valueScale
        self.nonFinite = nonFinite
    }

    var descriptor: mnk_kv_quantize_options {
        mnk_kv_quantize_options(
            candidates: UInt32(candidates.rawValue), key_scale: keyScale.code, value_scale: valueScale.code,
            non_finite: nonFinite.code)
    }
}
