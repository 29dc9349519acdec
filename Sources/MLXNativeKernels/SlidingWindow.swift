#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension SlidingWindow {
    init(_ descriptor: mnk_sliding_window) {
        self.init(
            window: Int(descriptor.window), maxRows: Int(descriptor.max_rows), maxDraft: Int(descriptor.max_draft))
    }
}
