#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// How the vectors of a quantized cache are encoded. The meaning of a codec's bytes never changes.
///
/// ``Name/turbo`` and ``Name/mlx1`` rotate a vector x of headDim elements,
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
        /// for each code, for 256 and 512. Scales are `float32`, one for a vector, or one for each half of 512 elements.
        case mlx1
        /// The bytes of mlx-native's `kv_quantize_v_no_fwht`, which writes values beside `float16` keys: as ``mlx1``
        /// with 5, 6 or 8 bits, but vectors are not rotated. An outlier therefore coarsens the rest of its vector.
        case mlx1Unrotated
        /// The bytes of mlx-native's `hadamard_quantize_kv_affine4`: 4 bits for 256 and 512, evenly spaced values
        /// instead of a codebook, no signs, and one `float32` scale for a vector.
        case mlx1Affine4

        var code: mnk_kv_codec_name {
            switch self {
            case .turbo: .MNK_TURBO
            case .mlx1: .MNK_MLX1
            case .mlx1Unrotated: .MNK_MLX1_UNROTATED
            case .mlx1Affine4: .MNK_MLX1_AFFINE4
            }
        }
    }

    /// Bits of one code.
    public enum Bits: Int, Sendable, Hashable, CaseIterable {
        /// 4 codebook values.
        case bits2 = 2
        /// 8 codebook values.
        case bits3
        /// 16 codebook values.
        case bits4
        /// 32 codebook values.
        case bits5
        /// 64 codebook values.
        case bits6
        /// 128 codebook values.
        case bits7
        /// 256 codebook values.
        case bits8
    }

    /// The sizes of one vector.
    public struct Sizes: Sendable, Hashable {
        /// Bytes of its codes.
        public let codeBytes: Int
        /// How many scales it has.
        public let scales: Int
        /// Bytes of all its scales.
        public let scaleBytes: Int

        /// Bytes of codes and scales.
        public var byteCount: Int { codeBytes + scaleBytes }
    }

    /// Which codec.
    public var name: Name
    /// Bits of one code.
    public var bits: Bits
    /// What ``Name/mlx1`` and ``Name/mlx1Unrotated`` multiply elements by before they are quantized, at a head dim of
    /// 512.
    public var scaleFactor: Float

    /// A codec. Whether it supports a head dim is checked when it is used.
    public init(_ name: Name, _ bits: Bits, scaleFactor: Float = 1) {
        self.name = name
        self.bits = bits
        self.scaleFactor = scaleFactor
    }

    /// ``Name/turbo`` with codes of this many bits.
    public static func turbo(_ bits: Bits) -> KVCodec { KVCodec(.turbo, bits) }

    /// ``Name/mlx1`` with codes of this many bits.
    public static func mlx1(_ bits: Bits) -> KVCodec { KVCodec(.mlx1, bits) }

    /// ``Name/mlx1Unrotated`` with codes of this many bits.
    public static func mlx1Unrotated(_ bits: Bits) -> KVCodec { KVCodec(.mlx1Unrotated, bits) }

    /// ``Name/mlx1Affine4``, whose codes have 4 bits.
    public static var mlx1Affine4: KVCodec { KVCodec(.mlx1Affine4, .bits4) }

    /// What the scales are.
    public var scaleType: ElementType { name == .turbo ? .float16 : .float32 }

    /// The sizes for a vector of this many elements.
    ///
    /// - Throws: ``KernelError`` if the codec does not support this head dim.
    public func sizes(headDim: Int) throws(KernelError) -> Sizes {
        let op = "KVCodec"
        var codec = try descriptor(op: op)
        let headDim = try UInt64(headDim, "headDim", op: op)
        var sizes = mnk_kv_codec_sizes()
        try calling { mnk_kv_codec_get_sizes(&codec, headDim, &sizes, $0) }
        return Sizes(
            codeBytes: Int(clamping: sizes.code_bytes), scales: Int(clamping: sizes.scales),
            scaleBytes: Int(clamping: sizes.scale_bytes))
    }

    func descriptor(op: String) throws(KernelError) -> mnk_kv_codec {
        // The C API reads 0 as a missing number.
        guard scaleFactor != 0 else {
            throw .invalid(
                op: op, what: "the scale factor cannot be used", got: "0",
                expected: "1, or for mlx1 and mlx1Unrotated at head dim 512 a number from 1e-6 to 1e6",
                fix: "Leave the scale factor at 1.")
        }
        return mnk_kv_codec(name: name.code, bits: UInt32(bits.rawValue), scale_factor: scaleFactor)
    }
}
