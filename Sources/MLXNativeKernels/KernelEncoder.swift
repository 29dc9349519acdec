#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Records work inside the closure of ``KernelDevice/encode(label:_:)``.
///
/// A call that throws has recorded nothing. A step ends with its closure: using it later throws. It belongs to one
/// thread at a time.
///
/// ```swift
/// let done = try device.encode(label: "token 12") { step in
///     try step.append(keys: k, values: v, to: cache)
///     try step.encode(KVCacheWrite(keys: k, into: view, at: 12))
/// }
/// ```
public final class KernelEncoder {
    private var handle: Handle?

    init(_ make: (ErrorOut) -> OpaquePointer?) throws(KernelError) {
        handle = try Handle(mnk_encoder_release, make)
    }

    /// Orders everything recorded so far before everything that follows.
    ///
    /// Dispatches that touch the same bytes are ordered without it.
    ///
    /// - Throws: ``KernelError`` after the step has ended.
    public func barrier() throws(KernelError) {
        try record { mnk_encoder_barrier($0, $1) }
    }

    /// Measures how long each kind of op takes on the device, for ``Summary/kinds``.
    ///
    /// It may be called anywhere in the closure. Measured ops run one after another, which costs some microseconds each
    /// on a GPU: see <doc:MeasuringOps>.
    ///
    /// - Throws: ``KernelError`` after the step has ended.
    public func measureOps() throws(KernelError) {
        try record { mnk_encoder_measure_ops($0, $1) }
    }

    /// Calls the C API with the encoder, while the step lasts.
    func record(_ body: (OpaquePointer, ErrorOut) -> Bool) throws(KernelError) {
        let handle = try openHandle()
        try calling { body(handle.pointer, $0) }
    }

    /// Lets the closure record, then submits. However it ends, the step is over.
    func committed(after body: (KernelEncoder) throws -> Void) throws -> Completion {
        defer { handle = nil }
        try body(self)
        let handle = try openHandle()
        return try Completion { mnk_encoder_commit(handle.pointer, $0, $1, $2) }
    }

    /// Lets the closure record, then makes a step of its calls. However it ends, the step is over.
    func recorded(after body: (KernelEncoder) throws -> Void) throws -> Handle {
        defer { handle = nil }
        try body(self)
        let handle = try openHandle()
        return try Handle(mnk_recorded_step_release) { mnk_recorded_step_make(handle.pointer, $0) }
    }

    var isOpen: Bool { handle != nil }

    private func openHandle() throws(KernelError) -> Handle {
        guard let handle else {
            throw .invalid(
                op: "KernelEncoder", what: "the step has ended", got: "a call after its closure",
                expected: "calls inside the closure of encode",
                fix: "Record all work before the closure returns, or start another step with encode.")
        }
        return handle
    }
}

@available(*, unavailable, message: "a step belongs to one thread at a time")
extension KernelEncoder: Sendable {}
