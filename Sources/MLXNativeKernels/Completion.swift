import Foundation

#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Submitted work.
///
/// It runs to its end whether or not a thread waits. Waiting and awaiting may be repeated and mixed, from any thread;
/// every call returns the same result. Reading a tensor waits for the work that writes it, so wait here only for the
/// time that it took, and for errors of work whose results are not read.
///
/// ```swift
/// let done = try device.encode { step in … }
/// try done.wait()                // or, where blocking is not allowed: try await done.finished
/// print(done.summary)
/// ```
public final class Completion: Sendable {
    private let handle: Handle
    private let outcome: Outcome

    init(
        _ commit: (mnk_finished, UnsafeMutableRawPointer, ErrorOut) -> OpaquePointer?
    ) throws(KernelError) {
        let outcome = Outcome()
        // The device's callback owns one reference; it is called if and only if commit succeeds.
        let context = Unmanaged.passRetained(outcome)
        do {
            handle = try Handle(mnk_completion_release) { error in
                commit(
                    { context, failure in
                        guard let context else { return }
                        Unmanaged<Outcome>.fromOpaque(context).takeRetainedValue()
                            .arrive(failure.map { KernelError(borrowing: $0) })
                    }, context.toOpaque(), error)
            }
        } catch {
            context.release()
            throw error
        }
        self.outcome = outcome
    }

    /// Blocks until the work is done. Work in the app's command buffer is done only after the app commits it.
    ///
    /// - Throws: ``KernelError`` if the device stopped it, or if it read what earlier, failed work was to write.
    public func wait() throws(KernelError) {
        try calling { mnk_completion_wait(handle.pointer, $0) }
    }

    /// Suspends until the work is done, then returns its summary.
    ///
    /// Canceling the task does not stop the work.
    ///
    /// - Throws: ``KernelError`` if the device stopped it, or if it read what earlier, failed work was to write.
    public var finished: Summary {
        get async throws(KernelError) {
            if let failure = await outcome.value { throw failure }
            return summary
        }
    }

    /// Whether the work is done, successfully or not.
    public var isDone: Bool { mnk_completion_is_done(handle.pointer) }

    /// What was recorded; the time is 0 until the work is done.
    public var summary: Summary { Summary(of: handle) }
}

/// The end of submitted work, for any number of waiting tasks.
private final class Outcome: @unchecked Sendable {
    private enum State {
        case pending([CheckedContinuation<KernelError?, Never>])
        case arrived(KernelError?)
    }
    private let lock = NSLock()
    private var state = State.pending([])  // only under the lock

    var value: KernelError? {
        get async {
            await withCheckedContinuation { continuation in
                let known: KernelError?? = lock.withLock {
                    switch state {
                    case .arrived(let failure): return .some(failure)
                    case .pending(let waiting):
                        state = .pending(waiting + [continuation])
                        return nil
                    }
                }
                if let known { continuation.resume(returning: known) }
            }
        }
    }

    func arrive(_ failure: KernelError?) {
        let waiting = lock.withLock {
            guard case .pending(let waiting) = state else { return [CheckedContinuation<KernelError?, Never>]() }
            state = .arrived(failure)
            return waiting
        }
        for continuation in waiting { continuation.resume(returning: failure) }
    }
}
