#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension SlidingWindow {
    static func seesNothing(op: String) -> KernelError {
        .invalid(
            op: op, what: "a sliding window sees nothing", got: "a window of 0",
            expected: "at least 1 position, the row's own",
            fix: "Pass the model's window, or leave the sliding window out.")
    }

    init?(_ descriptor: mnk_sliding_window) {
        guard descriptor.window != 0 else { return nil }
        self.init(
            window: Int(descriptor.window), maxRows: Int(descriptor.max_rows), maxDraft: Int(descriptor.max_draft))
    }
}
