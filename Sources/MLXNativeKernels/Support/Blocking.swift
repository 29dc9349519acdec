import Dispatch

/// Makes a call that may block, on a thread that may wait. Threads of Swift's cooperative pool are as few as the
/// processor's cores, and all tasks need them.
func blocking<Value: Sendable>(
    _ body: @escaping @Sendable () throws(KernelError) -> Value
) async throws(KernelError) -> Value {
    let result: Result<Value, KernelError> = await withCheckedContinuation { continuation in
        DispatchQueue.global().async { continuation.resume(returning: Result(catching: body)) }
    }
    return try result.get()
}
