// Generated from Sources/API by generate.py: change the description instead.
#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// How the vectors of a quantized cache are encoded. The meaning of a codec's bytes never changes.
///
/// ``KVCodec/Name/turbo`` and ``KVCodec/Name/mlx1`` rotate a vector x of headDim elements,
///
///     r = H(s .* x) / sqrt(headDim)
///
/// where H is the Walsh-Hadamard transform in natural order and s a fixed table of signs, and quantize each element of
/// r to the index of a codebook value for numbers of variance 1. ``Hadamard`` is this rotation as an op.
///
/// ```swift
/// let codec = KVCodec.turbo(.bits4)
/// let sizes = try codec.sizes(headDim: 128)
/// print(sizes.codeBytes, sizes.scaleBytes)      // 64 2
/// ```
public struct KVCodec: Sendable, Hashable {
    /// Which codec.
    public enum Name: Sendable, Hashable, CaseIterable {
        /// Head dims 32, 64, 80, 96, 112, 128, 192, 256 and 512, 2 to 8 bits, and one `float16` scale for a vector.
        case turbo
        /// The bytes of mlx-native 0.6.6 and later: 4 bits for powers of two from 4 to 4096; 5, 6 and 8 bits, a byte
        /// for each code, for 256 and 512. Scales are `float32`, one for a vector, or one for each half of 512
        /// elements.
        case mlx1
        /// The bytes of mlx-native's `kv_quantize_v_no_fwht`, which writes values beside `float16` keys: as
        /// ``KVCodec/Name/mlx1`` with 5, 6 or 8 bits, but vectors are not rotated. An outlier therefore coarsens the
        /// rest of its vector.
        case mlx1Unrotated
        /// The bytes of mlx-native's `hadamard_quantize_kv_affine4`: 4 bits for 256 and 512, evenly spaced values
        /// instead of a codebook, no signs, and one `float32` scale for a vector.
        case mlx1Affine4

        var code: mnk_kv_codec_name {
            switch self {
            case .turbo: .MNK_KV_CODEC_NAME_TURBO
            case .mlx1: .MNK_KV_CODEC_NAME_MLX1
            case .mlx1Unrotated: .MNK_KV_CODEC_NAME_MLX1_UNROTATED
            case .mlx1Affine4: .MNK_KV_CODEC_NAME_MLX1_AFFINE4
            }
        }
    }

    /// Which codec.
    public var name: Name
    /// Bits of one code: 2 to 8 for ``KVCodec/Name/turbo``; 4, 5, 6 or 8 for ``KVCodec/Name/mlx1``; 5, 6 or 8 for
    /// ``KVCodec/Name/mlx1Unrotated``; 4 for ``KVCodec/Name/mlx1Affine4``.
    public var bits: Bits
    /// What ``KVCodec/Name/mlx1`` and ``KVCodec/Name/mlx1Unrotated`` multiply elements by before they are quantized, at
    /// a head dim of 512.
    public var scaleFactor: Float

    /// A codec. Whether it supports a head dim is checked when it is used.
    public init(_ name: Name, _ bits: Bits, scaleFactor: Float = 1) {
        self.name = name
        self.bits = bits
        self.scaleFactor = scaleFactor
    }

    func descriptor(of owner: String = "", op: String) throws(KernelError) -> mnk_kv_codec {
        mnk_kv_codec(
            name: name.code,
            bits: UInt32(bits.rawValue),
            scale_factor: try nonzero(scaleFactor, "scaleFactor", of: owner, op: op))
    }
}

/// The scale that turbo stores for a vector r whose codes represent the codebook values c.
public enum KVScaleRule: Sendable, Hashable, CaseIterable {
    /// `<r, r> / <r, c>`: keeps the vector's component along itself, so that scores do not shrink.
    case unbiased
    /// `<r, c> / <c, c>`: minimizes the error of the vector.
    case leastSquares

    var code: mnk_kv_scale_rule {
        switch self {
        case .unbiased: .MNK_KV_SCALE_RULE_UNBIASED
        case .leastSquares: .MNK_KV_SCALE_RULE_LEAST_SQUARES
        }
    }
}

/// What is stored for a vector that holds a NaN or an infinity.
public enum KVNonFinite: Sendable, Hashable, CaseIterable {
    /// A scale that is NaN, so that what is computed with the vector is NaN.
    case propagate
    /// Zero.
    case zero

    var code: mnk_kv_non_finite {
        switch self {
        case .propagate: .MNK_KV_NON_FINITE_PROPAGATE
        case .zero: .MNK_KV_NON_FINITE_ZERO
        }
    }
}

/// In which domain vectors are read back.
public enum KVDomain: Sendable, Hashable, CaseIterable {
    /// That of the vectors which were stored: rotated back, channel scales and means undone.
    case original
    /// That of the codes: scale times codebook value, as attention reads it. ``Hadamard`` takes a query there. A plane
    /// that holds elements has one domain, the original.
    case rotated

    var code: mnk_kv_domain {
        switch self {
        case .original: .MNK_KV_DOMAIN_ORIGINAL
        case .rotated: .MNK_KV_DOMAIN_ROTATED
        }
    }
}

/// How vectors are quantized where the format allows a choice. Readers do not need it.
///
/// ```swift
/// let thorough = KVQuantizeOptions(candidates: .seventeen)
/// ```
public struct KVQuantizeOptions: Sendable, Hashable {
    /// How many sizes of a vector turbo tries, 1, 5 or 17, to keep the codes whose direction is nearest to the
    /// vector's.
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
            candidates: UInt32(candidates.rawValue),
            key_scale: keyScale.code,
            value_scale: valueScale.code,
            non_finite: nonFinite.code)
    }
}

/// Codes and scales of keys, or of values, in memory that the caller owns.
///
/// Shapes, where the first axis may be left out for a single sequence, and where scales have a last axis of 2 if a
/// vector has two of them:
/// - head-major: codes `[sequences, heads, capacity, codeBytes]`, scales `[sequences, heads, capacity]`
/// - token-major: codes `[sequences, capacity, heads, codeBytes]`, scales `[sequences, capacity, heads]`
///
/// What is quantized is `(x - means) .* channelScales`. For keys this is free: a mean that all keys of a head share
/// adds the same number to all scores of a query, and dividing queries by the channel scales leaves scores unchanged. A
/// mean of values is added to the result of attention.
///
/// One of keys and values may be dense: elements of `float32`, `float16` or `bfloat16`, with `headDim` instead of
/// `codeBytes`, and without scales.
///
/// ``init(elements:)`` makes such a plane.
///
/// ```swift
/// var keys = try QuantizedKVPlane.zeros(.turbo(.bits4), heads: 8, headDim: 128, capacity: 4096, on: device)
/// keys.means = try Tensor(keyMeans, shape: [8, 128], on: device)      // keyMeans: [Float]
/// ```
public struct QuantizedKVPlane: Sendable {
    /// The codec; ignored for dense vectors.
    public var codec: KVCodec
    /// Codes, `uint8`, or the elements of dense vectors.
    public var codes: Tensor
    /// Scales, `float16` for turbo, otherwise `float32`; `nil` for dense vectors.
    public var scales: Tensor?
    /// Subtracted from vectors before they are quantized: `float32`, `[heads, headDim]`. Turbo only.
    public var means: Tensor?
    /// Multiplies the difference: `float32`, `[heads, headDim]`, none of them 0. Keys of turbo only.
    public var channelScales: Tensor?

    /// A view of this memory. It is checked when it is used.
    public init(
        codec: KVCodec, codes: Tensor, scales: Tensor?, means: Tensor? = nil, channelScales: Tensor? = nil
    ) {
        self.codec = codec
        self.codes = codes
        self.scales = scales
        self.means = means
        self.channelScales = channelScales
    }

    func descriptor(of owner: String = "", op: String) throws(KernelError) -> mnk_quantized_kv_plane {
        mnk_quantized_kv_plane(
            codec: try codec.descriptor(of: owner, op: op),
            codes: codes.handle.pointer,
            scales: scales?.handle.pointer,
            means: means?.handle.pointer,
            channel_scales: channelScales?.handle.pointer)
    }
}

/// Memory of a quantized cache that the caller owns. Slots are those of a ``KVCacheView``.
///
/// ```swift
/// let keys = try QuantizedKVPlane.zeros(.turbo(.bits5), heads: 8, headDim: 128, capacity: 4096, on: device)
/// let values = try QuantizedKVPlane.zeros(.turbo(.bits4), heads: 8, headDim: 128, capacity: 4096, on: device)
/// let view = QuantizedKVCacheView(keys: keys, values: values, wrap: .ring, pinned: 4)
/// ```
public struct QuantizedKVCacheView: Sendable {
    /// Memory of the keys.
    public var keys: QuantizedKVPlane
    /// Memory of the values, which may have other bits and another head dim; `nil` for keys only.
    public var values: QuantizedKVPlane?
    /// The order of axes.
    public var layout: KVLayout
    /// Where positions beyond the last slot go.
    public var wrap: KVWrap
    /// First positions that a ring never overwrites.
    public var pinned: Int
    /// The length of values that are the first part of keys, in a latent cache; 0 if keys and values are separate.
    public var latentDim: Int

    /// A view of this memory. It is checked when it is used.
    public init(
        keys: QuantizedKVPlane, values: QuantizedKVPlane? = nil, layout: KVLayout = .headMajor, wrap: KVWrap = .linear,
        pinned: Int = 0, latentDim: Int = 0
    ) {
        self.keys = keys
        self.values = values
        self.layout = layout
        self.wrap = wrap
        self.pinned = pinned
        self.latentDim = latentDim
    }

    func descriptor(of owner: String = "", op: String) throws(KernelError) -> mnk_quantized_kv_cache_view {
        mnk_quantized_kv_cache_view(
            keys: try keys.descriptor(of: owner, op: op),
            values: try values?.descriptor(of: owner, op: op) ?? mnk_quantized_kv_plane(),
            layout: layout.code,
            wrap: wrap.code,
            pinned: try UInt32(pinned, "pinned", of: owner, op: op),
            latent_dim: try UInt32(latentDim, "latentDim", of: owner, op: op))
    }
}
