import Dispatch
import Foundation

/// Handles Ctrl-C between two tokens, so that the terminal is restored.
final class Interruption: @unchecked Sendable {
    /// The user pressed Ctrl-C.
    struct Interrupted: Error {}

    private let lock = NSLock()
    private var arrived = false  // guarded by the lock
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
