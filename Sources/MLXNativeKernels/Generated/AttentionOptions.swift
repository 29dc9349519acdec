// Generated from Sources/API by generate.py: change the description instead.
#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// How queries attend to the keys of a cache.
///
///     score[k] = cap(scale * <q, key k>) + slope * (position(k) - p) + mask[k]
///
/// for each key k that the row at position p sees. With a ``softcap``, `cap(x) = softcap * tanh(x / softcap)`;
/// otherwise, `cap(x) = x`. Keys are counted from the oldest that the cache holds: first the pinned positions of a
/// ring, then its newest.
///
/// ```swift
/// let options = AttentionOptions(scale: 0.125, window: 1024, softcap: 50)
/// ```
public struct AttentionOptions: Sendable {
    /// Which kernel computes.
    public enum Kernel: Sendable, Hashable, CaseIterable {
        /// The fastest on this device, but never the matrix kernel for `float32` queries, which are more precise. On a
        /// GPU, it may be the prefill kernel, which attends with any number of rows in one dispatch. That kernel does
        /// not merge splits itself, so it is not used with ``AttentionOptions/Merge/inKernel``.
        case automatic
        /// Computes in `float32` throughout.
        case vector
        /// Takes queries, keys, values and weights as `float16` and sums in `float32`: up to eight rows cost what one
        /// costs. Queries of `float32` and `bfloat16`, and those of quantized caches, are first multiplied by a power
        /// of two for each row, so that they keep the precision of `float16` at any magnitude.
        case matrix

        var code: mnk_attention_options_kernel {
            switch self {
            case .automatic: .MNK_ATTENTION_OPTIONS_KERNEL_AUTOMATIC
            case .vector: .MNK_ATTENTION_OPTIONS_KERNEL_VECTOR
            case .matrix: .MNK_ATTENTION_OPTIONS_KERNEL_MATRIX
            }
        }
    }

    /// What merges the parts of splits.
    public enum Merge: Sendable, Hashable, CaseIterable {
        /// The faster one on this device.
        case automatic
        /// A second dispatch.
        case separate
        /// The threadgroup that stores the last part, in the same dispatch. It needs a device that orders memory
        /// between threadgroups.
        case inKernel

        var code: mnk_attention_options_merge {
            switch self {
            case .automatic: .MNK_ATTENTION_OPTIONS_MERGE_AUTOMATIC
            case .separate: .MNK_ATTENTION_OPTIONS_MERGE_SEPARATE
            case .inKernel: .MNK_ATTENTION_OPTIONS_MERGE_IN_KERNEL
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
    /// Bounds scores to plus and minus this number, 1e-30 to 1e30; `nil` or 0 means that they have no bound.
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

    func descriptor(of owner: String = "", op: String) throws(KernelError) -> mnk_attention_options {
        mnk_attention_options(
            scale: scale ?? 0,
            is_bidirectional: !isCausal,
            window: try UInt32(window ?? 0, "window", of: owner, op: op),
            window_sees_pinned: windowSeesPinned,
            softcap: softcap ?? 0,
            mask: mask?.handle.pointer,
            slopes: slopes?.handle.pointer,
            sinks: sinks?.handle.pointer,
            splits: try splits.count(op: op),
            kernel: kernel.code,
            merge: merge.code)
    }
}

/// Attention over a part of the keys, for ``MergePartials`` to finish.
///
/// Parts may come from several caches or devices. Each says where its rows are (``AttendedSequence/position``), so that
/// causality, windows and slopes are those of the whole sequence.
///
/// For caches of one device, ``KernelEncoder/attend(_:over:sequences:rowCounts:after:into:_:logSumExp:)`` does all of
/// this in one call.
///
/// One allocation can hold all parts, with an axis of parts before the others:
///
/// ```swift
/// let parts = try AttentionPartials.zeros(shape: [2, 32, 128], on: device)      // 2 parts, 32 heads, head dim 128
/// // The row follows 100 keys in `old` and is the last of 7 in `new`.
/// let first = FlashDecode(
///     q, over: .dense(old), sequences: [.init(length: 100, position: 106)], intoPartials: try parts.part(0))
/// let second = FlashDecode(
///     q, over: .dense(new), sequences: [.init(length: 7, position: 6)], intoPartials: try parts.part(1))
/// let done = try device.encode { step in
///     try step.encode(first)
///     try step.encode(second)
///     try step.encode(MergePartials(parts, into: out))
/// }
/// ```
public struct AttentionPartials: Sendable {
    /// Results before the division: `float32`, the axes of the queries with the head dim of values.
    public var sums: Tensor
    /// For each row rowMax, the largest score times log2(e) or at most 8 less, and rowSum, the sum of
    /// `2^(score * log2(e) - rowMax)`: `float32`, the same axes with a last axis of 2. A row that sees no key has
    /// rowSum 0.
    public var stats: Tensor

    /// Partials over this memory. They are checked when they are used.
    public init(sums: Tensor, stats: Tensor) {
        self.sums = sums
        self.stats = stats
    }

    var descriptor: mnk_attention_partials {
        mnk_attention_partials(
            sums: sums.handle.pointer,
            stats: stats.handle.pointer)
    }
}

/// A sequence of a cache, and how many positions it has, including those of the queries.
public struct AttendedSequence: Sendable, Hashable {
    /// Which sequence of the cache; `nil` is that of a cache of one.
    public var sequence: Int?
    /// Its positions, less than 2^31. A length of 0 gives zeros.
    public var length: Int
    /// The largest length that it has had since it was empty, if tokens were rolled back since; `nil` or 0 means
    /// ``length``. A ring has lost what those tokens overwrote: it holds its pinned positions and the newest before
    /// this length.
    public var highest: Int?
    /// How many rows of the queries are of the sequence; `nil` or 0 means the same number for each sequence, by the
    /// queries' shape. With row counts, for all sequences or for none, queries and results are one list of all rows,
    /// and there is no mask.
    public var rows: Int?
    /// The position of the first row, counted from the cache's first key; without it, the rows are the newest tokens.
    /// If n tokens, which are in other caches, come between the end of this one and the first row, the position is
    /// ``length`` + n. It is below 0 if the cache begins after the row. Partial results need a position: a part without
    /// it would be masked as if the rows were its newest tokens.
    public var position: Int?

    /// A sequence with this many positions.
    public init(
        _ sequence: Int? = nil, length: Int, highest: Int? = nil, rows: Int? = nil, position: Int? = nil
    ) {
        self.sequence = sequence
        self.length = length
        self.highest = highest
        self.rows = rows
        self.position = position
    }

    func descriptor(of owner: String = "", op: String) throws(KernelError) -> mnk_attended_sequence {
        mnk_attended_sequence(
            sequence: try UInt64(sequence: sequence, op: op),
            length: try UInt64(length, "length", of: owner, op: op),
            highest: try UInt64(highest ?? 0, "highest", of: owner, op: op),
            rows: try UInt64(rows ?? 0, "rows", of: owner, op: op),
            has_position: position != nil,
            position: Int64(position ?? 0))
    }
}
