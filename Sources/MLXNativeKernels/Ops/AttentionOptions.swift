#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// How queries attend to the keys of a cache.
///
///     score[k] = cap(scale * <q, key k>) + slope * (position(k) - p) + mask[k]
///
/// for each key k that the row at position p sees. With a ``softcap``, `cap(x) = softcap * tanh(x / softcap)`; otherwise,
/// `cap(x) = x`. Keys are counted from the oldest that the cache holds: first the pinned positions of a ring, then its
/// newest.
///
/// ```swift
/// let options = AttentionOptions(scale: 0.125, window: 1024, softcap: 50)
/// ```
public struct AttentionOptions: Sendable {
    /// Parts that the keys of a sequence are divided into, which are processed in parallel and merged.
    public enum Splits: Sendable, Hashable {
        /// As many as keep the device busy.
        case automatic
        /// This many, 1 to 1024.
        case exactly(Int)
    }

    /// Which kernel computes.
    public enum Kernel: Sendable, Hashable, CaseIterable {
        /// The fastest on this device, but never the matrix kernel for `float32` queries. On a GPU, it may be the
        /// prefill kernel, which attends with any number of rows in one dispatch. That kernel does not merge splits
        /// itself, so it is not used with ``AttentionOptions/Merge/inKernel``.
        case automatic
        /// Computes in `float32` throughout.
        case vector
        /// Takes queries, keys, values and weights as `float16` and sums in `float32`: up to eight rows cost what one
        /// costs.
        case matrix

        fileprivate var code: mnk_flash_decode_kernel {
            switch self {
            case .automatic: .MNK_KERNEL_AUTOMATIC
            case .vector: .MNK_KERNEL_VECTOR
            case .matrix: .MNK_KERNEL_MATRIX
            }
        }
    }

    /// What merges the parts of splits.
    public enum Merge: Sendable, Hashable, CaseIterable {
        /// The faster one on this device.
        case automatic
        /// A second dispatch.
        case separate
        /// The threadgroup that stores the last part, in the same dispatch. It needs a device that orders memory between
        /// threadgroups.
        case inKernel

        fileprivate var code: mnk_flash_decode_merge {
            switch self {
            case .automatic: .MNK_MERGE_AUTOMATIC
            case .separate: .MNK_MERGE_SEPARATE
            case .inKernel: .MNK_MERGE_IN_KERNEL
            }
        }
    }

    /// Multiplies products of queries and keys, 1e-37 to 4e19 / headDim; `nil` or 0 means `1 / sqrt(headDim)`. A latent
    /// cache requires a scale.
    ///
    /// Scores are computed in `float32`. Within these limits they are finite for all finite `float16` queries and keys.
    /// Larger numbers can overflow, and the results are then NaN (<doc:NonFiniteNumbers>).
    public var scale: Float?
    /// Whether a row sees nothing after its own position.
    public var isCausal: Bool
    /// How many newest positions a row sees, including its own; `nil` or 0 means all, or the window of a cache that was
    /// made with a ``SlidingWindow``.
    ///
    /// A window that reaches positions that a ring has overwritten is an error: a step of several rows needs
    /// `window + rows - 1` slots.
    public var window: Int?
    /// Whether a row with a window also sees the pinned positions of a ring.
    public var windowSeesPinned: Bool
    /// Bounds scores to plus and minus this number, 1e-30 to 1e30; `nil` or 0 means none.
    public var softcap: Float?
    /// Added to scores, of any float type: `[rows, keys]`, `[heads, rows, keys]` or `[sequences, heads, rows, keys]`.
    ///
    /// Axes before the keys may be 1 and are then used for all; there may be more keys than the cache holds.
    public var mask: Tensor?
    /// The slopes of ALiBi, `float32` `[heads]`.
    public var slopes: Tensor?
    /// A score for each head that takes part in the softmax and adds no value, `float32` `[heads]`. Partial results
    /// cannot have sinks.
    public var sinks: Tensor?
    /// Parts that the keys of a sequence are divided into.
    public var splits: Splits
    /// Which kernel computes.
    public var kernel: Kernel
    /// What merges the parts of splits.
    public var merge: Merge

    /// Options with these values. They are checked when they are used.
    public init(
        scale: Float? = nil, isCausal: Bool = true, window: Int? = nil, windowSeesPinned: Bool = false,
        softcap: Float? = nil, mask: Tensor? = nil, slopes: Tensor? = nil, sinks: Tensor? = nil,
        splits: Splits = .automatic, kernel: Kernel = .automatic, merge: Merge = .automatic
    ) {
        self.scale = scale
        self.isCausal = isCausal
        self.window = window
        self.windowSeesPinned = windowSeesPinned
        self.softcap = softcap
        self.mask = mask
        self.slopes = slopes
        self.sinks = sinks
        self.splits = splits
        self.kernel = kernel
        self.merge = merge
    }

    func descriptor(op: String) throws(KernelError) -> mnk_attention_options {
        mnk_attention_options(
            scale: scale ?? 0,
            is_bidirectional: !isCausal,
            window: try UInt32(window ?? 0, "window", op: op),
            softcap: softcap ?? 0,
            mask: mask?.handle.pointer,
            slopes: slopes?.handle.pointer,
            sinks: sinks?.handle.pointer,
            splits: try splitCount(op: op),
            kernel: kernel.code,
            merge: merge.code,
            window_sees_pinned: windowSeesPinned)
    }

    private func splitCount(op: String) throws(KernelError) -> UInt32 {
        guard case .exactly(let count) = splits else { return 0 }
        // The C API reads 0 as a missing number and takes no negative ones.
        guard count > 0 else {
            throw .invalid(
                op: op, what: "the number of splits is out of range", got: "exactly \(count)", expected: "1 to 1024",
                fix: "Use .automatic, or .exactly(1) for one dispatch.")
        }
        return try UInt32(count, "the number of splits", op: op)
    }
}
