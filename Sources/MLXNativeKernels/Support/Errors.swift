#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// Where the C API stores an error that the caller releases.
typealias ErrorOut = UnsafeMutablePointer<OpaquePointer?>

/// Calls a function of the C API that returns false when it fails.
func calling(_ body: (ErrorOut) -> Bool) throws(KernelError) {
    var failure: OpaquePointer?
    guard body(&failure) else { throw KernelError(releasing: failure) }
}

/// Calls a function of the C API that makes an object, or returns null when it fails.
func making(_ body: (ErrorOut) -> OpaquePointer?) throws(KernelError) -> OpaquePointer {
    var failure: OpaquePointer?
    guard let object = body(&failure) else { throw KernelError(releasing: failure) }
    return object
}

extension KernelError {
    init(releasing failure: OpaquePointer?) {
        guard let failure else {
            self = .invalid(
                op: "MLXNativeKernels", what: "a call failed without saying why", got: "no error",
                expected: "an error in four parts", fix: "Please report this.")
            return
        }
        self.init(borrowing: failure)
        mnk_error_release(failure)
    }

    init(borrowing failure: OpaquePointer) {
        self.init(
            code: Code(mnk_error_get_code(failure)),
            op: String(cString: mnk_error_op(failure)),
            what: String(cString: mnk_error_what(failure)),
            got: String(cString: mnk_error_got(failure)),
            expected: String(cString: mnk_error_expected(failure)),
            fix: String(cString: mnk_error_fix(failure)),
            isRetryable: mnk_error_is_retryable(failure))
    }

    /// A mistake that only Swift can make, such as a negative number where C has none.
    static func invalid(op: String, what: String, got: String, expected: String, fix: String) -> KernelError {
        KernelError(
            code: .invalidArgument, op: op, what: what, got: got, expected: expected, fix: fix, isRetryable: false)
    }
}
