#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension AttentionCache {
    /// How keys and values are stored.
    public enum Storage: Sendable, Hashable {
        /// As numbers: `float32`, `float16` or `bfloat16`.
        case dense(ElementType)
        /// As codes of so many bits, with a scale for each vector. ``KVCodec`` says what a codec can code;
        /// `scaleFactor` is for ``KVCodec/Name/mlx1`` at a head dim of 512.
        case quantized(
            KVCodec.Name, keys: KVCodec.Bits, values: KVCodec.Bits, scaleFactor: Float = 1,
            options: KVQuantizeOptions = KVQuantizeOptions())
    }

    /// Numbers for each channel of ``KVCodec/Name/turbo``, measured beforehand: what is coded is
    /// `(x - means) .* channelScales`. ``QuantizedKVPlane`` says what they are good for.
    ///
    /// A cache copies them when it is made.
    public struct Calibration: Sendable {
        /// `float32`, `[kvHeads, headDim]`.
        public var keyMeans: Tensor?
        /// `float32`, `[kvHeads, valueHeadDim]`.
        public var valueMeans: Tensor?
        /// `float32`, `[kvHeads, headDim]`, none of them 0.
        public var keyChannelScales: Tensor?

        /// Those that are not given play no part.
        public init(keyMeans: Tensor? = nil, valueMeans: Tensor? = nil, keyChannelScales: Tensor? = nil) {
            self.keyMeans = keyMeans
            self.valueMeans = valueMeans
            self.keyChannelScales = keyChannelScales
        }
    }

    /// Bytes of the keys and values of one position of one sequence, with their scales.
    public var bytesPerToken: Int { Int(clamping: mnk_cache_bytes_per_token(handle.pointer)) }

    /// How many more bytes the same extents would take as `float16`; negative for `float32`.
    public var bytesSaved: Int { Int(clamping: mnk_cache_bytes_saved(handle.pointer)) }

    /// Memory of a quantized cache for ops of the caller's; `nil` for a dense one.
    public var quantizedView: QuantizedKVCacheView? {
        guard case .quantized(let codec, let keyBits, let valueBits, let scaleFactor, _) = storage,
            let keyScales, let valueScales
        else { return nil }
        return QuantizedKVCacheView(
            keys: QuantizedKVPlane(
                codec: KVCodec(codec, keyBits, scaleFactor: scaleFactor), codes: keys, scales: keyScales,
                means: calibration.keyMeans, channelScales: calibration.keyChannelScales),
            values: QuantizedKVPlane(
                codec: KVCodec(codec, valueBits, scaleFactor: scaleFactor), codes: values, scales: valueScales,
                means: calibration.valueMeans),
            layout: .headMajor, wrap: whenFull.wrap, pinned: whenFull.pinned, latentDim: dimensions.latentDim)
    }
}

extension AttentionCache.Storage: CustomStringConvertible {
    /// A short text: `float16`, `turbo, 4 bits` or `turbo, keys 5 bits, values 4 bits`.
    public var description: String {
        switch self {
        case .dense(let dtype): dtype.rawValue
        case .quantized(let codec, let keys, let values, _, _):
            keys == values
                ? "\(codec), \(keys.rawValue) bits"
                : "\(codec), keys \(keys.rawValue) bits, values \(values.rawValue) bits"
        }
    }
}

extension AttentionCache.Storage {
    /// What the C API takes in the place of an element type; `nil` for dense storage.
    func quantization(_ calibration: AttentionCache.Calibration) throws(KernelError) -> mnk_cache_quantization? {
        switch self {
        case .dense(let dtype):
            guard calibration.keyMeans == nil, calibration.valueMeans == nil, calibration.keyChannelScales == nil
            else {
                throw .invalid(
                    op: "AttentionCache", what: "a calibration is for quantized storage", got: "a cache of \(dtype)",
                    expected: "quantized storage", fix: "Leave the calibration out, or quantize.")
            }
            return nil
        case .quantized(let codec, let keyBits, let valueBits, let scaleFactor, let options):
            let keys = try KVCodec(codec, keyBits, scaleFactor: scaleFactor).descriptor(op: "AttentionCache")
            return mnk_cache_quantization(
                size: MemoryLayout<mnk_cache_quantization>.size,
                codec: keys.name,
                key_bits: keys.bits,
                value_bits: UInt32(valueBits.rawValue),
                scale_factor: keys.scale_factor,
                options: options.descriptor,
                key_means: calibration.keyMeans?.handle.pointer,
                value_means: calibration.valueMeans?.handle.pointer,
                key_channel_scales: calibration.keyChannelScales?.handle.pointer)
        }
    }

    init(_ descriptor: mnk_cache_descriptor) {
        guard let given = descriptor.quantization?.pointee else {
            self = .dense(ElementType(descriptor.dtype))
            return
        }
        // The core has made a cache of these numbers, so that there are names for them here.
        self = .quantized(
            given.codec == .MNK_TURBO ? .turbo : .mlx1,
            keys: KVCodec.Bits(rawValue: Int(given.key_bits)) ?? .bits4,
            values: KVCodec.Bits(rawValue: Int(given.value_bits)) ?? .bits4,
            scaleFactor: given.scale_factor,
            options: KVQuantizeOptions(
                candidates: KVQuantizeOptions.Candidates(rawValue: Int(given.options.candidates)) ?? .five,
                keyScale: given.options.key_scale == .MNK_SCALE_UNBIASED ? .unbiased : .leastSquares,
                valueScale: given.options.value_scale == .MNK_SCALE_UNBIASED ? .unbiased : .leastSquares,
                nonFinite: given.options.non_finite == .MNK_NON_FINITE_ZERO ? .zero : .propagate))
    }
}

extension AttentionCache.Calibration {
    /// Tensors over the copies that the cache keeps.
    init(_ descriptor: mnk_cache_descriptor) throws(KernelError) {
        guard let given = descriptor.quantization?.pointee else { return }
        func shared(_ tensor: OpaquePointer?) throws(KernelError) -> Tensor? {
            guard let tensor else { return nil }
            return try Tensor { mnk_tensor_make_slice(tensor, 0, UInt64(descriptor.kv_heads), $0) }
        }
        keyMeans = try shared(given.key_means)
        valueMeans = try shared(given.value_means)
        keyChannelScales = try shared(given.key_channel_scales)
    }
}
