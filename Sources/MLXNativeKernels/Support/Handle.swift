#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Owns one object of the C API and releases it once.
///
/// Unchecked, because the compiler cannot see what the C API promises: every function may be called from any
/// thread. Encoders are the exception, so ``KernelEncoder`` is not `Sendable`.
final class Handle: @unchecked Sendable {
    let pointer: OpaquePointer
    private let release: (OpaquePointer?) -> Void

    init(_ release: @escaping (OpaquePointer?) -> Void, _ make: (ErrorOut) -> OpaquePointer?) throws(KernelError) {
        pointer = try making(make)
        self.release = release
    }

    deinit { release(pointer) }
}
