import Foundation
import MLXNativeKernels

/// The state after the prompt, or after one more byte.
public struct WriterUpdate: Sendable {
    /// The text added since the last update.
    public let text: String
    /// The position of the next token.
    public let position: Int
    /// Bytes of the positions in the caches, and of all slots.
    public let bytesInUse, cacheBytes: Int
    /// The position in each slot of the first windowed layer's ring.
    public let slots: [Int?]
    /// The newest tokens with their attention weights for one head of the last layer.
    public let attended: [(token: UInt8, weight: Float)]
    /// The time for these bytes and this update.
    public let seconds: Double
}

/// The bytes of a prompt. An empty prompt becomes a newline, which ends a preceding text.
///
/// - Throws: ``ModelError`` for a prompt that leaves no room to write.
public func promptTokens(_ prompt: String, context: Int) throws(ModelError) -> [UInt8] {
    let tokens = prompt.isEmpty ? [UInt8(ascii: "\n")] : Array(prompt.utf8)
    guard tokens.count < context else {
        throw ModelError(
            code: .contextFull, what: "the prompt leaves no room to write", got: "\(tokens.count) bytes",
            expected: "fewer than \(context)", fix: "Shorten the prompt.")
    }
    return tokens
}

/// Continues a prompt byte by byte on its own queue, because it waits for the device, which a task must not do.
public final class Writer: @unchecked Sendable {
    private let queue = DispatchQueue(label: "writer")
    private let prompt: [UInt8]
    private let limit: Int
    private let attentionHead: Int
    // Used only on the queue:
    private let session: DecodeSession
    private var sampler: Sampler
    private var text = ByteText()

    /// The number of tokens with weights in an update.
    public static let attendedCount = 256

    /// A writer that has not yet read its prompt.
    ///
    /// - Throws: ``ModelError`` for a prompt that leaves no room to write, or `KernelError`.
    public init(
        _ model: LanguageModel, storage: StorageChoice, sampler: Sampler, device: KernelDevice, prompt: String,
        attentionHead: Int = 0
    ) throws {
        limit = model.configuration.context
        self.prompt = try promptTokens(prompt, context: limit)
        self.sampler = sampler
        self.attentionHead = attentionHead
        session = try DecodeSession(model, storage: storage, on: device)
    }

    /// Reads the prompt, or writes one byte; `nil` when the context is full.
    public func next() async throws -> WriterUpdate? {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try self.step() }) }
        }
    }

    private func step() throws -> WriterUpdate? {
        guard session.position < limit else { return nil }
        let begin = now()
        let bytes = session.position == 0 ? prompt : [sampler.choose(session.newestLogits)]
        _ = try session.logits(after: bytes)
        let weights = try session.attention(
            layer: session.caches.count - 1, heads: attentionHead..<attentionHead + 1)[0]
        let shown = bytes.reduce("") { $0 + text.append($1) }
        return try WriterUpdate(
            text: session.position == limit ? shown + text.finish() : shown, position: session.position,
            bytesInUse: session.bytesInUse, cacheBytes: session.cacheBytes, slots: session.slots(ofLayer: 0),
            attended: Array(zip(session.tokens, weights).suffix(Self.attendedCount)), seconds: now() - begin)
    }
}
