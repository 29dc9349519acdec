#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// What a sliding-window cache must serve exactly: steps of up to ``maxRows`` rows that each see ``window`` positions,
/// also after a rollback of up to ``maxDraft`` of the newest tokens.
///
/// A step of several rows sees `window + maxRows - 1` positions, and a rollback of n tokens has lost n positions. The
/// cache has slots for the larger of the two:
///
/// ```swift
/// let cache = try AttentionCache(
///     .init(kvHeads: 8, headDim: 128), slidingWindow: .init(window: 1024, maxRows: 8, maxDraft: 4), on: device)
/// cache.dimensions.capacity        // 1031
/// ```
public struct SlidingWindow: Sendable, Hashable {
    /// How many positions a row sees, including its own.
    public var window: Int
    /// The most rows of one step, or of one chunk of a longer prompt; 0 means the default, 64.
    public var maxRows: Int
    /// The most tokens that ``AttentionCache/truncate(to:sequence:)`` rolls back at a time.
    public var maxDraft: Int

    /// A window, and what a step may ask of it. It is checked when it is used.
    public init(window: Int, maxRows: Int = 64, maxDraft: Int = 0) {
        self.window = window
        self.maxRows = maxRows
        self.maxDraft = maxDraft
    }

    func descriptor(op: String) throws(KernelError) -> mnk_sliding_window {
        // The C API reads 0 as no window.
        guard window != 0 else {
            throw .invalid(
                op: op, what: "a sliding window sees nothing", got: "a window of 0",
                expected: "at least 1 position, the row's own",
                fix: "Pass the model's window, or leave the sliding window out.")
        }
        return mnk_sliding_window(
            window: try UInt32(window, "window", op: op), max_rows: try UInt32(maxRows, "maxRows", op: op),
            max_draft: try UInt32(maxDraft, "maxDraft", op: op))
    }

    init?(_ descriptor: mnk_sliding_window) {
        guard descriptor.window != 0 else { return nil }
        self.init(
            window: Int(descriptor.window), maxRows: Int(descriptor.max_rows), maxDraft: Int(descriptor.max_draft))
    }
}
