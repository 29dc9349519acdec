// Generated from Sources/API by generate.py: change the description instead.
#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// What a sliding-window cache must serve exactly: steps of up to ``maxRows`` rows that each see ``window`` positions,
/// also after a rollback of up to ``maxDraft`` of the newest tokens.
///
/// A step of several rows sees `window + maxRows - 1` positions, and a rollback of n tokens has lost n positions. The
/// cache has slots for the larger of the two.
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

    func descriptor(of owner: String = "", op: String) throws(KernelError) -> mnk_sliding_window {
        mnk_sliding_window(
            window: try UInt32(window, "window", of: owner, op: op),
            max_rows: try UInt32(maxRows, "maxRows", of: owner, op: op),
            max_draft: try UInt32(maxDraft, "maxDraft", of: owner, op: op))
    }

    init(_ descriptor: mnk_sliding_window) {
        self.init(
            window: Int(clamping: descriptor.window), maxRows: Int(clamping: descriptor.max_rows),
            maxDraft: Int(clamping: descriptor.max_draft))
    }
}

/// How attention chooses kernels, splits and sizes of threadgroups. The choice changes the last bits of results.
///
/// <doc:PreparingADevice> describes both.
public enum Tuning: Sendable, Hashable, CaseIterable {
    /// By a table that comes with the library. Choices that an earlier call measured stay in use.
    case table
    /// By measuring on this device, for some tens of milliseconds for each shape. The choices are kept in a file by
    /// device, version of the system and kernels, and not measured again. Until that file changes, results are the same
    /// from run to run, bit for bit.
    case measure

    var code: mnk_tuning {
        switch self {
        case .table: .MNK_TUNING_TABLE
        case .measure: .MNK_TUNING_MEASURE
        }
    }
}
