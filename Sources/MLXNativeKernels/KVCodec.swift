#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension KVCodec {
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
}
