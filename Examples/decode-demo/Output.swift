import Foundation

/// Where text goes: a stream of the process, or what a test reads.
typealias Sink = (String) throws(OutputFailure) -> Void

/// Text that could not be written.
struct OutputFailure: Error {
    /// The system's number for the reason.
    let code: Int32

    /// The reader of the output closed the pipe.
    var isUnwanted: Bool { code == EPIPE }
    var message: String { "the output cannot be written: \(String(cString: strerror(code)))" }
}

/// Text for a stream of the process, which may be full, closed or left by its reader.
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

/// Makes writes to streams that are closed or left fail, where they would end the process or go astray: a file that is
/// opened later would get a closed stream's number, and its texts.
func keepStreamsApart() {
    signal(SIGPIPE, SIG_IGN)
    // Numbers are given out from the lowest. What can be read alone cannot be written by mistake.
    for descriptor in 0...2 where fcntl(Int32(descriptor), F_GETFD) == -1 { _ = open("/dev/null", O_RDONLY) }
}
