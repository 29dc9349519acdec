#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Keys and values of past tokens, with the next position of each sequence.
///
/// ``KernelEncoder/append(keys:values:to:sequence:)`` writes at the next position, which advances when the step's
/// closure has returned and the work is submitted; an abandoned step advances nothing. If submitted work fails
/// on the device, the sequences it appended to are suspect until ``truncate(to:sequence:)`` or ``reset()``.
///
/// Several threads may use a cache, each with its own steps. A step is refused, with a retryable error, if another
/// thread has since changed tokens that it reads or the position at which it appends; <doc:Errors> has the details.
///
/// ```swift
/// let cache = try AttentionCache(
///     .init(kvHeads: 8, headDim: 128, capacity: 4096),
///     storage: .dense(.float16),
///     whenFull: .overwriteOldest(keepingFirst: 4),
///     on: device)
/// let done = try device.encode { step in
///     try step.append(keys: k, values: v, to: cache)
/// }
/// try cache.nextPosition      // 1
/// ```
///
/// A cache can hold several sequences. A call then names the sequence, or lists the sequences of its rows; without
/// either it is for the only sequence, and throws if there are several.
///
/// Quantized storage keeps more tokens in the same memory; calling code does not change:
///
/// ```swift
/// let small = try AttentionCache(
///     .init(kvHeads: 8, headDim: 128, capacity: 4096),
///     storage: .quantized(.turbo, keys: .bits4, values: .bits4),
///     on: device)
/// ```
///
/// A layer with a sliding window needs no capacity. The cache sizes itself, and rows that attend without their own
/// window use the cache's:
///
/// ```swift
/// let windowed = try AttentionCache(
///     .init(kvHeads: 8, headDim: 128), slidingWindow: .init(window: 1024), on: device)
/// ```
///
/// A model with multi-head latent attention (MLA) stores one latent vector for all heads, which serves as keys and as
/// values, and the rotated part of the key; <doc:FlashDecode> says how to attend to it:
///
/// ```swift
/// let latent = try AttentionCache(.init(kvHeads: 1, headDim: 64, capacity: 4096, latentDim: 512), on: device)
/// ```
///
/// Keys and values of one append have the same element type, which may differ from that of the cache.
/// <doc:NonFiniteNumbers> says what becomes of NaN and of numbers that the storage cannot hold.
public final class AttentionCache: Sendable {
    /// The extents of a cache.
    public struct Dimensions: Sendable, Hashable {
        /// Heads of keys and values.
        public var kvHeads: Int
        /// Elements of a key of one head.
        public var headDim: Int
        /// Slots of one sequence; 0 for a cache that sizes itself to a ``SlidingWindow``.
        public var capacity: Int
        /// Sequences that are kept side by side.
        public var sequences: Int
        /// Elements of a value of one head; 0 means the default.
        public var valueHeadDim: Int
        /// For a latent cache: how many first elements of a key are also its value, and are appended as values.
        /// `headDim` elements follow them in a key. 0 if keys and values are separate.
        public var latentDim: Int

        /// Dimensions with these extents. By default a value is as long as a key, or as its latent part.
        public init(
            kvHeads: Int, headDim: Int, capacity: Int, sequences: Int = 1, valueHeadDim: Int? = nil, latentDim: Int = 0
        ) {
            self.kvHeads = kvHeads
            self.headDim = headDim
            self.capacity = capacity
            self.sequences = sequences
            self.valueHeadDim = valueHeadDim ?? (latentDim == 0 ? headDim : latentDim)
            self.latentDim = latentDim
        }

        /// Dimensions without a capacity, for a cache that sizes itself to a ``SlidingWindow``.
        public init(kvHeads: Int, headDim: Int, sequences: Int = 1, valueHeadDim: Int? = nil, latentDim: Int = 0) {
            self.init(
                kvHeads: kvHeads, headDim: headDim, capacity: 0, sequences: sequences, valueHeadDim: valueHeadDim,
                latentDim: latentDim)
        }
    }

    /// What an append does when every slot is taken.
    public struct WhenFull: Sendable, Hashable {
        let wrap: KVWrap
        let pinned: Int

        /// The append fails.
        public static let fail = WhenFull(wrap: .linear, pinned: 0)
        /// The newest tokens take the slots of the oldest.
        public static let overwriteOldest = WhenFull(wrap: .ring, pinned: 0)
        /// The newest tokens take the slots of the oldest, except for the first positions, which stay.
        public static func overwriteOldest(keepingFirst pinned: Int) -> WhenFull {
            WhenFull(wrap: .ring, pinned: pinned)
        }
    }

    let handle: Handle

    /// The extents, with the actual capacity.
    public let dimensions: Dimensions
    /// How keys and values are stored.
    public let storage: Storage
    /// What an append does when every slot is taken.
    public let whenFull: WhenFull
    /// What a sliding-window cache serves; `nil` for another. Rows that attend without a window use this one.
    public let slidingWindow: SlidingWindow?
    /// Whether the cache may have head dims that attention does not support.
    public let isStorageOnly: Bool
    /// Means and channel scales, over the copies that the cache keeps.
    public let calibration: Calibration
    /// All keys, over the cache's memory: `[sequences, kvHeads, capacity, headDim]`, or their codes, `uint8`, with the
    /// bytes of a vector's codes instead of `headDim`. Memory of a new cache is not cleared: bytes of slots that hold no
    /// position are undefined.
    public let keys: Tensor
    /// All values, over the cache's memory, as keys with `valueHeadDim`.
    public let values: Tensor
    /// Scales of quantized keys: `[sequences, kvHeads, capacity]`, with a last axis of 2 if a vector has two. `nil` for
    /// dense vectors.
    public let keyScales: Tensor?
    /// Scales of quantized values, shaped like those of keys. `nil` for dense vectors.
    public let valueScales: Tensor?

    /// An empty cache.
    ///
    /// Attention has kernels for head dims that are multiples of 8 up to 256, for 512, and for keys of 576 with values
    /// of 512; over quantized storage for 32, 64, 80, 96, 112, 128, 192 and 256, for keys and values each, and for 512
    /// of both; and over latent caches of either storage for 64 elements behind a latent part of 512. Other head dims
    /// need `isStorageOnly`.
    ///
    /// - Parameters:
    ///   - dimensions: Its extents.
    ///   - storage: How keys and values are stored.
    ///   - calibration: Means and channel scales for quantized storage, which are copied.
    ///   - whenFull: What an append does when every slot is taken.
    ///   - isStorageOnly: Whether the cache only stores. It may then have any head dims.
    ///   - device: The device whose memory it uses.
    /// - Throws: ``KernelError`` for impossible dimensions, head dims that attention has no kernel for, an element type
    ///   that is not a float, a codec that does not support these head dims, or if memory runs out.
    public convenience init(
        _ dimensions: Dimensions, storage: Storage = .dense(.float16), calibration: Calibration = Calibration(),
        whenFull: WhenFull = .fail, isStorageOnly: Bool = false, on device: KernelDevice
    ) throws(KernelError) {
        try self.init(
            dimensions, storage, calibration, whenFull, slidingWindow: nil,
            isStorageOnly: isStorageOnly, on: device)
    }

    /// An empty cache for a layer that sees a window of the newest positions: a ring that serves the window exactly.
    ///
    /// It has `keepingFirst + window + max(maxRows, maxDraft) - 1` slots, unless the dimensions have a larger capacity.
    /// Rows that attend without their own window use this one.
    ///
    /// - Parameters:
    ///   - dimensions: Its extents.
    ///   - slidingWindow: What it serves.
    ///   - pinned: The number of first positions that are never overwritten.
    ///     ``AttentionOptions/windowSeesPinned`` makes rows see them.
    ///   - storage: How keys and values are stored.
    ///   - calibration: Means and channel scales for quantized storage, which are copied.
    ///   - device: The device whose memory it uses.
    /// - Throws: ``KernelError`` as for another cache, and for a capacity that is too small for the window.
    public convenience init(
        _ dimensions: Dimensions, slidingWindow: SlidingWindow, keepingFirst pinned: Int = 0,
        storage: Storage = .dense(.float16), calibration: Calibration = Calibration(), on device: KernelDevice
    ) throws(KernelError) {
        try self.init(
            dimensions, storage, calibration, .overwriteOldest(keepingFirst: pinned),
            slidingWindow: try slidingWindow.descriptor(op: "AttentionCache"), isStorageOnly: false, on: device)
    }

    private convenience init(
        _ dimensions: Dimensions, _ storage: Storage, _ calibration: Calibration, _ whenFull: WhenFull,
        slidingWindow: mnk_sliding_window?, isStorageOnly: Bool, on device: KernelDevice
    ) throws(KernelError) {
        let op = "AttentionCache"
        let quantization = try storage.quantization(calibration)
        let latentDim = try UInt32(dimensions.latentDim, "latentDim", op: op)  // valueHeadDim may be the same number
        var descriptor = mnk_attention_cache_descriptor(
            kv_heads: try UInt32(dimensions.kvHeads, "kvHeads", op: op),
            head_dim: try UInt32(dimensions.headDim, "headDim", op: op),
            value_head_dim: try UInt32(dimensions.valueHeadDim, "valueHeadDim", op: op),
            capacity: try UInt32(dimensions.capacity, "capacity", op: op),
            sequences: try UInt32(dimensions.sequences, "sequences", op: op),
            dtype: storage.elementType.code,
            when_full: whenFull.wrap.code,
            pinned: try UInt32(whenFull.pinned, "keepingFirst", op: op),
            has_quantized: quantization != nil,
            quantized: quantization ?? mnk_kv_quantized_storage(),
            has_sliding_window: slidingWindow != nil,
            sliding_window: slidingWindow ?? mnk_sliding_window(),
            latent_dim: latentDim,
            is_storage_only: isStorageOnly)
        try self.init(
            Handle(mnk_cache_release) { error in
                withExtendedLifetime(calibration) { mnk_cache_make(device.handle.pointer, &descriptor, error) }
            })
    }

    /// The cache of a handle, which knows what it was made with.
    init(_ handle: Handle) throws(KernelError) {
        let descriptor = mnk_cache_get_descriptor(handle.pointer)
        dimensions = Dimensions(
            kvHeads: Int(descriptor.kv_heads), headDim: Int(descriptor.head_dim), capacity: Int(descriptor.capacity),
            sequences: Int(descriptor.sequences), valueHeadDim: Int(descriptor.value_head_dim),
            latentDim: Int(descriptor.latent_dim))
        whenFull = WhenFull(
            wrap: descriptor.when_full == .MNK_KV_WRAP_RING ? .ring : .linear, pinned: Int(descriptor.pinned))
        slidingWindow = descriptor.has_sliding_window ? SlidingWindow(descriptor.sliding_window) : nil
        isStorageOnly = descriptor.is_storage_only
        storage = Storage(descriptor)
        calibration = try Calibration(descriptor)
        keys = try Tensor { mnk_cache_make_keys(handle.pointer, $0) }
        values = try Tensor { mnk_cache_make_values(handle.pointer, $0) }
        let coding = storage.coding
        keyScales = coding?.keys != nil ? try Tensor { mnk_cache_make_key_scales(handle.pointer, $0) } : nil
        valueScales = coding?.values != nil ? try Tensor { mnk_cache_make_value_scales(handle.pointer, $0) } : nil
        // Last, so that it is alive while what it provides is read.
        self.handle = handle
    }

    /// Bytes of keys and values together, with their scales.
    public var byteCount: Int { Int(clamping: mnk_cache_byte_count(handle.pointer)) }

    /// Bytes of the keys and values of one sequence.
    public var bytesPerSequence: Int { byteCount / max(dimensions.sequences, 1) }

    /// The slot that holds this position while it is kept.
    ///
    /// - Returns: `nil` for a position that the cache has no slot for.
    public func slot(ofPosition position: Int) -> Int? {
        guard let position = UInt64(exactly: position) else { return nil }
        let slot = mnk_cache_slot(handle.pointer, position)
        return slot < dimensions.capacity ? Int(slot) : nil
    }
}

extension AttentionCache: CustomStringConvertible {
    /// One line: `8 heads of 128 as f16, 1 sequence at position 13, 4096 slots that fail when full, 16.8 MB`.
    public var description: String { String(releasing: mnk_cache_copy_text(handle.pointer)) }
}
