import Dispatch
import Foundation

/// Ctrl-C, noticed between two tokens, so that the terminal is left as it was found.
final class Interruption: @unchecked Sendable {
    /// The reader pressed Ctrl-C.
    struct Interrupted: Error {}

    private let lock = NSLock()
    private var arrived = false  // only under the lock
    private let source: any DispatchSourceSignal

    init() {
        signal(SIGINT, SIG_IGN)
        source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
        source.setEventHandler { [unowned self] in lock.withLock { arrived = true } }
        source.resume()
    }

    deinit { source.cancel() }

    func check() throws(Interrupted) {
        if lock.withLock({ arrived }) { throw Interrupted() }
    }
}
