#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// A step that is recorded once and run many times, such as all layers of a token.
///
/// It keeps the calls that were made. A run makes them again: appends start where their caches then end, and attention
/// covers what the caches then hold. A run follows the rules of ``KernelDevice/encode(label:_:)``: all caches advance
/// or none, and what no longer fits, such as an append to a full cache, throws before anything runs.
///
/// ```swift
/// let step = try device.record { step in
///     try step.rotate(q, k, positions: .next(of: cache), with: rotary)
///     try step.append(keys: k, values: v, to: cache)
///     try step.attend(q, over: cache, into: out)
/// }
/// for token in prompt {
///     // write q, k and v
///     try step.run()
/// }
/// ```
///
/// Rotary positions follow a cache if they are its next ones (``MultiRoPE/Positions/next(of:sequences:rowCounts:)``), or
/// if `appendAndAttend` rotates without positions. Numbers and lists stay, and are refused in a step that appends to a
/// cache. Positions of ops over caller-owned caches stay too; a tensor is read when the step runs. A step keeps the
/// tensors and caches that it uses. Threads may share it.
public final class RecordedStep: Sendable {
    let handle: Handle
    /// The device that it runs on.
    public let device: KernelDevice

    init(_ handle: Handle, on device: KernelDevice) {
        self.handle = handle
        self.device = device
    }

    /// Records the step into a new command buffer and submits it.
    ///
    /// - Throws: ``KernelError`` if a call no longer fits; a retryable one if another thread changed a cache that it
    ///   uses meanwhile. Then nothing runs and nothing advances.
    @discardableResult
    public func run() throws(KernelError) -> Completion {
        try Completion { mnk_recorded_step_run(handle.pointer, $0, $1, $2) }
    }

    /// What was recorded. Later runs may differ, as more keys are divided among more threadgroups.
    public var summary: Summary { Summary(ofStep: handle) }
}

extension KernelDevice {
    /// Records the closure's calls as a step that can be run later, any number of times.
    ///
    /// Every rule is checked. Nothing runs, and no cache advances.
    ///
    /// - Parameters:
    ///   - label: A name of every run, for debuggers and messages.
    ///   - body: Records work on its step. The step ends with the closure; using it later throws.
    /// - Throws: What `body` throws, or ``KernelError``.
    public func record(label: String = "", _ body: (KernelEncoder) throws -> Void) throws -> RecordedStep {
        let encoder = try KernelEncoder { mnk_encoder_make_recording(handle.pointer, label, $0) }
        return RecordedStep(try encoder.recorded(after: body), on: self)
    }
}

extension KernelEncoder {
    /// Records all calls of a recorded step, together with this step's other work.
    ///
    /// If a later call is refused, this step holds part of the recorded one and cannot be committed.
    ///
    /// - Throws: ``KernelError`` if a call no longer fits, or the step is of another device.
    public func encode(_ step: RecordedStep) throws(KernelError) {
        try record { mnk_encoder_encode_step($0, step.handle.pointer, $1) }
    }

    /// Records the dispatches of a plan.
    ///
    /// - Throws: ``KernelError`` if the plan uses a kernel that this device lacks, or memory of another device.
    public func encode(_ plan: Plan) throws(KernelError) {
        try record { mnk_encoder_encode_plan($0, plan.handle.pointer, $1) }
    }
}
