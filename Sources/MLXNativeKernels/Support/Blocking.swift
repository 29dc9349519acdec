import Foundation

/// Makes a call that may block, on its own thread. Threads of Swift's cooperative pool, and on Linux those of
/// Dispatch's queues, are as few as the processor's cores, and all tasks need them.
func blocking<Value: Sendable>(
    _ body: @escaping @Sendable () throws(KernelError) -> Value
) async throws(KernelError) -> Value {
    let result: Result<Value, KernelError> = await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: Result(catching: body)) }
    }
    return try result.get()
}
