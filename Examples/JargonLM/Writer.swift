import MLXNativeKernels

/// What a reader sees after one more byte.
public struct WriterUpdate: Sendable {
    /// What can be shown of the text since the last update.
    public let text: String
    /// The position that the next token gets.
    public let position: Int
    /// Bytes of the positions that are held, and of all slots.
    public let bytesInUse, cacheBytes: Int
    /// The position in each slot of the first windowed layer's ring.
    public let slots: [Int?]
    /// The newest tokens, and how much each of them weighs for one head of the last layer.
    public let attended: [(token: UInt8, weight: Float)]
    /// Seconds that this byte took.
    public let seconds: Double
}

/// Continues a prompt, byte by byte, away from the caller's thread.
public actor Writer {
    private let session: DecodeSession
    private var sampler: Sampler
    private var text = ByteText()
    private var logits: [Float] = []
    private let limit: Int
    private let attentionHead: Int
    private let prompted: [UInt8]

    /// A writer that has not read its prompt. An empty prompt is read as a new line, which ends a text before this one.
    ///
    /// - Throws: ``ModelError`` for a prompt that leaves no room to write, or `KernelError`.
    public init(
        _ model: LanguageModel, storage: StorageChoice, sampler: Sampler, device: KernelDevice, prompt: String,
        attentionHead: Int = 0
    ) throws {
        limit = model.configuration.context
        prompted = prompt.isEmpty ? [UInt8(ascii: "\n")] : Array(prompt.utf8)
        guard prompted.count < limit else {
            throw ModelError(
                code: .contextFull, what: "the prompt leaves no room to write", got: "\(prompted.count) bytes",
                expected: "fewer than \(limit)", fix: "Shorten the prompt.")
        }
        self.sampler = sampler
        self.attentionHead = attentionHead
        session = try DecodeSession(model, storage: storage, on: device)
    }

    /// Reads one byte of the prompt, or writes one; `nil` when the context is full.
    public func next() throws -> WriterUpdate? {
        guard session.position < limit else { return nil }
        let begin = now()
        let isReading = session.position < prompted.count
        let byte = isReading ? prompted[session.position] : sampler.choose(logits)
        logits = try session.logits(after: byte)
        let seconds = now() - begin
        let weights = try session.attention(layer: session.caches.count - 1, head: attentionHead)
        return WriterUpdate(
            text: text.append(byte), position: session.position, bytesInUse: session.bytesInUse,
            cacheBytes: session.cacheBytes, slots: session.slots(ofLayer: 0),
            attended: Array(zip(session.tokens, weights).suffix(Self.attendedCount)), seconds: seconds)
    }

    /// How many tokens of an update are shown with their weights.
    public static let attendedCount = 256

    /// How many bytes of the prompt there are.
    public var promptCount: Int { prompted.count }
}
