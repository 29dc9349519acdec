import Foundation

/// The destination of text: a standard stream, or a test.
typealias Sink = (String) throws(OutputFailure) -> Void

/// Text that could not be written.
struct OutputFailure: Error {
    /// The value of errno.
    let code: Int32

    /// The reader of the output closed the pipe.
    var isUnwanted: Bool { code == EPIPE }
    var message: String { "the output cannot be written: \(String(cString: strerror(code)))" }
}

/// Writes text to a standard stream, which may be full or closed, or whose reader may have exited.
func sink(_ handle: FileHandle) -> Sink {
    { text throws(OutputFailure) in
        do {
            try handle.write(contentsOf: Data(text.utf8))
        } catch {
            let reason = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
            throw OutputFailure(code: Int32(truncatingIfNeeded: reason?.code ?? Int(EIO)))
        }
    }
}

/// Makes writes to closed streams and pipes fail instead of ending the process or writing elsewhere: a file opened
/// later would otherwise get a closed stream's descriptor, and its text.
func keepStreamsApart() {
    signal(SIGPIPE, SIG_IGN)
    // Descriptors are assigned from the lowest, and writes to a read-only one fail.
    for descriptor in 0...2 where fcntl(Int32(descriptor), F_GETFD) == -1 { _ = open("/dev/null", O_RDONLY) }
}
