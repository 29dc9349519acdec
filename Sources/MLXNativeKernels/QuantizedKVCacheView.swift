#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

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
/// One of keys and values may be dense: ``init(elements:)`` makes such a plane.
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
    /// Scales, of the codec's ``KVCodec/scaleType``; `nil` for dense vectors.
    public var scales: Tensor?
    /// Subtracted from vectors before they are quantized: `float32`, `[heads, headDim]`. ``KVCodec/Name/turbo`` only.
    public var means: Tensor?
    /// Multiplies the difference: `float32`, `[heads, headDim]`, none of them 0. Keys of ``KVCodec/Name/turbo`` only.
    public var channelScales: Tensor?

    /// A view of this memory. It is checked when it is used.
    public init(codec: KVCodec, codes: Tensor, scales: Tensor?, means: Tensor? = nil, channelScales: Tensor? = nil) {
        self.codec = codec
        self.codes = codes
        self.scales = scales
        self.means = means
        self.channelScales = channelScales
    }

    /// Dense vectors beside codes: `float32`, `float16` or `bfloat16`, with `headDim` instead of `codeBytes`.
    public init(elements: Tensor) {
        self.init(codec: .turbo(.bits4), codes: elements, scales: nil)
    }

    /// New memory, in which every vector is zero.
    ///
    /// - Throws: ``KernelError`` if the codec does not support this head dim, for an impossible shape, or if memory
    ///   runs out.
    public static func zeros(
        _ codec: KVCodec, heads: Int, headDim: Int, capacity: Int, sequences: Int? = nil,
        layout: KVLayout = .headMajor, on device: KernelDevice
    ) throws(KernelError) -> QuantizedKVPlane {
        let sizes = try codec.sizes(headDim: headDim)
        let slots = (sequences.map { [$0] } ?? []) + (layout == .headMajor ? [heads, capacity] : [capacity, heads])
        return QuantizedKVPlane(
            codec: codec,
            codes: try Tensor.zeros(shape: slots + [sizes.codeBytes], dtype: .uint8, on: device),
            scales: try Tensor.zeros(
                shape: slots + (sizes.scales > 1 ? [sizes.scales] : []), dtype: codec.scaleType, on: device))
    }

    func descriptor(op: String) throws(KernelError) -> mnk_quantized_kv_plane {
        mnk_quantized_kv_plane(
            codec: try codec.descriptor(op: op), codes: codes.handle.pointer, scales: scales?.handle.pointer,
            means: means?.handle.pointer, channel_scales: channelScales?.handle.pointer)
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

    /// Bytes that codes and scales of such a cache take, before it is made.
    ///
    /// ```swift
    /// try QuantizedKVCacheView.byteCount(
    ///     keys: .turbo(.bits4), values: .turbo(.bits4), heads: 8, headDim: 128, capacity: 4096)      // 4325376
    /// ```
    ///
    /// - Parameters:
    ///   - keys: The codec of keys.
    ///   - values: The codec of values; `nil` for keys only.
    ///   - heads: Heads of keys and values.
    ///   - headDim: Elements of a key of one head.
    ///   - valueHeadDim: Elements of a value of one head; by default those of a key.
    ///   - capacity: Slots of one sequence.
    ///   - sequences: Sequences that are kept side by side.
    /// - Throws: ``KernelError`` if a codec does not support its head dim, or the bytes are too many to count.
    public static func byteCount(
        keys: KVCodec, values: KVCodec?, heads: Int, headDim: Int, valueHeadDim: Int? = nil, capacity: Int,
        sequences: Int = 1
    ) throws(KernelError) -> Int {
        let op = "QuantizedKVCacheView"
        var extents = mnk_quantized_cache_extents()
        extents.keys = try keys.descriptor(op: op)
        extents.head_dim = try UInt64(headDim, "headDim", op: op)
        // The C API reads a value head dim of 0, and 0 sequences, as missing numbers.
        if let values {
            _ = try values.sizes(headDim: valueHeadDim ?? headDim)
            extents.has_values = true
            extents.values = try values.descriptor(op: op)
            extents.value_head_dim = try UInt64(valueHeadDim ?? headDim, "valueHeadDim", op: op)
        }
        extents.heads = try UInt64(heads, "heads", op: op)
        extents.capacity = try UInt64(capacity, "capacity", op: op)
        extents.sequences = try UInt64(sequences, "sequences", op: op)
        var bytes: UInt64 = 0
        try calling { mnk_quantized_cache_get_byte_count(&extents, &bytes, $0) }
        return sequences == 0 ? 0 : Int(clamping: bytes)
    }

    func descriptor(op: String) throws(KernelError) -> mnk_quantized_kv_view {
        var view = mnk_quantized_kv_view()
        view.keys = try keys.descriptor(op: op)
        if let values { view.values = try values.descriptor(op: op) }
        view.layout = layout.code
        view.wrap = wrap.code
        view.pinned = try UInt32(pinned, "pinned", op: op)
        view.latent_dim = try UInt32(latentDim, "latentDim", op: op)
        return view
    }
}
