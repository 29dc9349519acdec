import Dispatch
import Foundation

/// The results of `work` in the order of `items`; most of the time is spent waiting for compilers.
func concurrently<Item: Sendable, Answer: Sendable>(
    _ items: [Item], _ work: @Sendable (Item) throws -> Answer
) throws -> [Answer] {
    let answers = Answers<Answer>(count: items.count)
    DispatchQueue.concurrentPerform(iterations: items.count) { index in
        answers.set(index, Result { try work(items[index]) })
    }
    return try answers.all()
}

private final class Answers<Answer: Sendable>: @unchecked Sendable {
    private let lock = NSLock()
    private var results: [Result<Answer, any Error>?]

    init(count: Int) { results = Array(repeating: nil, count: count) }

    func set(_ index: Int, _ result: Result<Answer, any Error>) { lock.withLock { results[index] = result } }

    func all() throws -> [Answer] { try lock.withLock { try results.compactMap { try $0?.get() } } }
}
