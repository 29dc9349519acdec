#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// What a step recorded: counts are known at once, the time when the work is done.
///
/// ```swift
/// print(done.summary)                                // 1 dispatch, 0 barriers, 4.1 KB read, 2.0 KB written, 9 µs
/// done.summary.counts(ofKind: "KVCacheWrite").bytesWritten
/// ```
public struct Summary: Sendable {
    /// Counts of dispatches and of the bytes they move, and the time they take.
    public struct Counts: Sendable, Hashable {
        /// Kernels launched.
        public let dispatches: Int
        /// Bytes read by them.
        public let bytesRead: Int
        /// Bytes written by them.
        public let bytesWritten: Int
        /// Time on the device, in seconds; in ``Summary/total`` that of all kinds. 0 unless the step called
        /// ``KernelEncoder/measureOps()``, the device can measure, and the work is done.
        public let deviceSeconds: Double

        init(_ counts: mnk_counts) {
            dispatches = Int(clamping: counts.dispatches)
            bytesRead = Int(clamping: counts.bytes_read)
            bytesWritten = Int(clamping: counts.bytes_written)
            deviceSeconds = counts.device_seconds
        }
    }

    /// Counts of the whole step.
    public let total: Counts
    /// Barriers placed between dispatches, the explicit ones among them.
    public let barriers: Int
    /// Time that the device spent on the whole step, measured or not, in seconds; 0 until the work is done.
    public let deviceSeconds: Double
    /// The whole summary in one line. It ends with a warning if a call was divided into many chunks (<doc:SlidingWindows>).
    public let description: String

    private let countsOfKind: @Sendable (String) -> mnk_counts
    private let kindAt: @Sendable (Int) -> UnsafeMutablePointer<CChar>?

    init(of completion: Handle) {
        self.init(
            mnk_completion_summary(completion.pointer), text: mnk_completion_copy_text(completion.pointer),
            counts: { mnk_completion_counts(completion.pointer, $0) },
            kind: { mnk_completion_copy_kind(completion.pointer, $0) })
    }

    init(ofStep step: Handle) {
        self.init(
            mnk_recorded_step_summary(step.pointer), text: mnk_recorded_step_copy_text(step.pointer),
            counts: { mnk_recorded_step_counts(step.pointer, $0) },
            kind: { mnk_recorded_step_copy_kind(step.pointer, $0) })
    }

    private init(
        _ summary: mnk_summary, text: UnsafeMutablePointer<CChar>?, counts: @escaping @Sendable (String) -> mnk_counts,
        kind: @escaping @Sendable (Int) -> UnsafeMutablePointer<CChar>?
    ) {
        total = Counts(summary.total)
        barriers = Int(clamping: summary.barriers)
        deviceSeconds = summary.device_seconds
        description = String(releasing: text)
        countsOfKind = counts
        kindAt = kind
    }

    /// Counts by kind of dispatch: an op's name, or the kind of a dispatch.
    public var kinds: [String: Counts] {
        var kinds: [String: Counts] = [:]
        var index = 0
        while let kind = kindAt(index).map({ String(releasing: $0) }) {
            kinds[kind] = counts(ofKind: kind)
            index += 1
        }
        return kinds
    }

    /// Counts of one kind of dispatch: an op's name, or the kind of a dispatch. Zeros for an unknown kind.
    public func counts(ofKind kind: String) -> Counts { Counts(countsOfKind(kind)) }
}

extension Summary: CustomStringConvertible {}
