#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension AttentionCache {
    /// How keys and values are stored.
    public enum Storage: Sendable, Hashable {
        /// As elements: `float32`, `float16` or `bfloat16`.
        case dense(ElementType)
        /// As codes of this many bits, with a scale for each vector. ``KVCodec`` lists what a codec supports;
        /// `scaleFactor` is for ``KVCodec/Name/mlx1`` and ``KVCodec/Name/mlx1Unrotated`` at a head dim of 512.
        case quantized(
            KVCodec.Name, keys: KVCodec.Bits, values: KVCodec.Bits, scaleFactor: Float = 1,
            options: KVQuantizeOptions = KVQuantizeOptions())
        /// Keys quantized, values dense. Head dims are those of the codec.
        case quantizedKeys(
            KVCodec.Name, KVCodec.Bits, values: ElementType, scaleFactor: Float = 1,
            options: KVQuantizeOptions = KVQuantizeOptions())
        /// Values quantized, keys dense. Head dims are those of the codec.
        case quantizedValues(
            KVCodec.Name, KVCodec.Bits, keys: ElementType, scaleFactor: Float = 1,
            options: KVQuantizeOptions = KVQuantizeOptions())
    }

    /// Numbers for each channel of the codec ``KVCodec/Name/turbo``, measured beforehand: what is quantized is
    /// `(x - means) .* channelScales`. ``QuantizedKVPlane`` describes their use.
    ///
    /// A cache copies them when it is made.
    public struct Calibration: Sendable {
        /// `float32`, `[kvHeads, headDim]`.
        public var keyMeans: Tensor?
        /// `float32`, `[kvHeads, valueHeadDim]`.
        public var valueMeans: Tensor?
        /// `float32`, `[kvHeads, headDim]`, none of them 0.
        public var keyChannelScales: Tensor?

        /// A `nil` value is ignored.
        public init(keyMeans: Tensor? = nil, valueMeans: Tensor? = nil, keyChannelScales: Tensor? = nil) {
            self.keyMeans = keyMeans
            self.valueMeans = valueMeans
            self.keyChannelScales = keyChannelScales
        }
    }

    /// Bytes of the keys and values of one position of one sequence, with their scales.
    public var bytesPerToken: Int { Int(clamping: mnk_cache_bytes_per_token(handle.pointer)) }

    /// How many more bytes the cache would take as `float16`; negative for `float32`.
    public var bytesSaved: Int { Int(clamping: mnk_cache_bytes_saved(handle.pointer)) }

    /// The memory of a quantized cache, for the caller's own ops; `nil` for a dense cache.
    public var quantizedView: QuantizedKVCacheView? {
        guard let coding = storage.coding else { return nil }
        var keyPlane = QuantizedKVPlane(elements: keys)
        if let bits = coding.keys {
            keyPlane = QuantizedKVPlane(
                codec: KVCodec(coding.codec, bits, scaleFactor: coding.scaleFactor), codes: keys, scales: keyScales,
                means: calibration.keyMeans, channelScales: calibration.keyChannelScales)
        }
        var valuePlane = QuantizedKVPlane(elements: values)
        if let bits = coding.values {
            valuePlane = QuantizedKVPlane(
                codec: KVCodec(coding.codec, bits, scaleFactor: coding.scaleFactor), codes: values,
                scales: valueScales, means: calibration.valueMeans)
        }
        return QuantizedKVCacheView(
            keys: keyPlane, values: valuePlane, layout: .headMajor, wrap: whenFull.wrap, pinned: whenFull.pinned,
            latentDim: dimensions.latentDim)
    }
}

extension AttentionCache.Storage: CustomStringConvertible {
    /// A short description: `float16`, `turbo, 4 bits`, `turbo, keys 5 bits, values 4 bits` or
    /// `turbo, keys float16, values 4 bits`.
    public var description: String {
        switch self {
        case .dense(let dtype): dtype.rawValue
        case .quantized(let codec, let keys, let values, _, _):
            keys == values
                ? "\(codec), \(keys.rawValue) bits"
                : "\(codec), keys \(keys.rawValue) bits, values \(values.rawValue) bits"
        case .quantizedKeys(let codec, let bits, let values, _, _):
            "\(codec), keys \(bits.rawValue) bits, values \(values.rawValue)"
        case .quantizedValues(let codec, let bits, let keys, _, _):
            "\(codec), keys \(keys.rawValue), values \(bits.rawValue) bits"
        }
    }
}

extension AttentionCache.Storage {
    /// How a storage codes, with no bits for what it does not code.
    struct Coding {
        var codec: KVCodec.Name
        var keys: KVCodec.Bits?
        var values: KVCodec.Bits?
        var scaleFactor: Float
        var options: KVQuantizeOptions
    }

    /// `nil` for dense storage.
    var coding: Coding? {
        switch self {
        case .dense: nil
        case .quantized(let codec, let keys, let values, let scaleFactor, let options):
            Coding(codec: codec, keys: keys, values: values, scaleFactor: scaleFactor, options: options)
        case .quantizedKeys(let codec, let bits, _, let scaleFactor, let options):
            Coding(codec: codec, keys: bits, values: nil, scaleFactor: scaleFactor, options: options)
        case .quantizedValues(let codec, let bits, _, let scaleFactor, let options):
            Coding(codec: codec, keys: nil, values: bits, scaleFactor: scaleFactor, options: options)
        }
    }

    /// The element type of what is not quantized; bytes if everything is.
    var elementType: ElementType {
        switch self {
        case .dense(let dtype): dtype
        case .quantized: .uint8
        case .quantizedKeys(_, _, let values, _, _): values
        case .quantizedValues(_, _, let keys, _, _): keys
        }
    }

    /// What the C API takes instead of an element type; `nil` for dense storage.
    func quantization(_ calibration: AttentionCache.Calibration) throws(KernelError) -> mnk_kv_quantized_storage? {
        guard let coding, let bits = coding.keys ?? coding.values else {
            guard calibration.keyMeans == nil, calibration.valueMeans == nil, calibration.keyChannelScales == nil
            else {
                throw .invalid(
                    op: "AttentionCache", what: "a calibration is for quantized storage",
                    got: "a cache of \(elementType)", expected: "quantized storage",
                    fix: "Leave the calibration out, or quantize.")
            }
            return nil
        }
        let codec = try KVCodec(coding.codec, bits, scaleFactor: coding.scaleFactor).descriptor(op: "AttentionCache")
        return mnk_kv_quantized_storage(
            codec: codec.name,
            key_bits: codec.bits,
            value_bits: UInt32((coding.values ?? bits).rawValue),
            scale_factor: codec.scale_factor,
            options: coding.options.descriptor,
            key_means: calibration.keyMeans?.handle.pointer,
            value_means: calibration.valueMeans?.handle.pointer,
            key_channel_scales: calibration.keyChannelScales?.handle.pointer,
            planes: coding.keys == nil
                ? .MNK_KV_QUANTIZED_PLANES_VALUES
                : coding.values == nil ? .MNK_KV_QUANTIZED_PLANES_KEYS : .MNK_KV_QUANTIZED_PLANES_BOTH)
    }

    init(_ descriptor: mnk_attention_cache_descriptor) {
        guard descriptor.has_quantized else {
            self = .dense(ElementType(descriptor.dtype))
            return
        }
        let given = descriptor.quantized
        // The core has made a cache of these numbers, so that there are names for them here.
        let codec = KVCodec.Name.allCases.first { $0.code == given.codec } ?? .turbo
        let keyBits = KVCodec.Bits(rawValue: Int(given.key_bits)) ?? .bits4
        let valueBits = KVCodec.Bits(rawValue: Int(given.value_bits)) ?? .bits4
        let options = KVQuantizeOptions(
            candidates: KVQuantizeOptions.Candidates(rawValue: Int(given.options.candidates)) ?? .five,
            keyScale: given.options.key_scale == .MNK_KV_SCALE_RULE_UNBIASED ? .unbiased : .leastSquares,
            valueScale: given.options.value_scale == .MNK_KV_SCALE_RULE_UNBIASED ? .unbiased : .leastSquares,
            nonFinite: given.options.non_finite == .MNK_KV_NON_FINITE_ZERO ? .zero : .propagate)
        let dense = ElementType(descriptor.dtype)
        switch given.planes {
        case .MNK_KV_QUANTIZED_PLANES_KEYS:
            self = .quantizedKeys(codec, keyBits, values: dense, scaleFactor: given.scale_factor, options: options)
        case .MNK_KV_QUANTIZED_PLANES_VALUES:
            self = .quantizedValues(codec, valueBits, keys: dense, scaleFactor: given.scale_factor, options: options)
        default:
            self = .quantized(
                codec, keys: keyBits, values: valueBits, scaleFactor: given.scale_factor, options: options)
        }
    }
}

extension AttentionCache.Calibration {
    /// Tensors over the copies that the cache keeps.
    init(_ descriptor: mnk_attention_cache_descriptor) throws(KernelError) {
        guard descriptor.has_quantized else { return }
        let given = descriptor.quantized
        func shared(_ tensor: OpaquePointer?) throws(KernelError) -> Tensor? {
            guard let tensor else { return nil }
            return try Tensor { mnk_tensor_make_slice(tensor, 0, UInt64(descriptor.kv_heads), $0) }
        }
        keyMeans = try shared(given.key_means)
        valueMeans = try shared(given.value_means)
        keyChannelScales = try shared(given.key_channel_scales)
    }
}
