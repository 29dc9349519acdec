import Foundation
import MLXNativeKernels

/// A text that a model reads or writes, with the caches of all its layers.
///
/// One call of `logits(after:)` reads one token, or all tokens of a prompt. In every layer the processor multiplies by
/// weights, and the device rotates queries and keys, stores keys and values, and attends: one command buffer per layer,
/// because the next multiplication needs the result of attention.
///
/// Use a session from one thread at a time.
public final class DecodeSession {
    /// The model with the weights.
    public let model: LanguageModel
    /// The device that runs the kernels.
    public let device: KernelDevice
    /// The storage of keys and values.
    public let storage: StorageChoice
    /// One cache per layer. A windowed layer has a ring, with slots for its window and for a step of a prompt.
    public let caches: [AttentionCache]
    /// The cost of all tokens so far.
    public private(set) var costs = DecodeCosts()
    /// The tokens read so far, oldest first.
    public private(set) var tokens: [UInt8] = []
    /// The scores of all bytes after the newest token; empty before the first token.
    public private(set) var newestLogits: [Float] = []

    /// Whether all layers have read the same tokens. A failure within a token makes them differ.
    private var isWhole = true
    /// The operands for a single token.
    private let single: Operands
    let rotary: RotaryEmbedding
    private let measuresOps: Bool
    /// The newest token's inputs to each layer's kernels, before rotation.
    private(set) var newest: [Newest]

    /// The operands of a layer's kernels; all layers share them, because each waits for its work.
    private struct Operands {
        let queries, keys, values, output: Tensor

        init(tokens: Int, _ sizes: Configuration, on device: KernelDevice) throws(KernelError) {
            queries = try .zeros(shape: [tokens, sizes.heads, sizes.headDim], on: device)
            keys = try .zeros(shape: [tokens, sizes.kvHeads, sizes.headDim], on: device)
            values = try .zeros(shape: [tokens, sizes.kvHeads, sizes.headDim], on: device)
            output = try .zeros(shape: [tokens, sizes.heads, sizes.headDim], on: device)
        }
    }

    struct Newest {
        var queries: [Float] = []
        var keys: [Float] = []
        var values: [Float] = []
        /// The result of attention.
        var attended: [Float] = []
    }

    /// A session without tokens.
    ///
    /// - Parameter measuresOps: Whether ``costs`` include the time of each op; measuring itself takes time.
    public init(
        _ model: LanguageModel, storage: StorageChoice = .f16, measuresOps: Bool = false, on device: KernelDevice
    ) throws(KernelError) {
        let sizes = model.configuration
        self.model = model
        self.storage = storage
        self.device = device
        self.measuresOps = measuresOps
        var caches: [AttentionCache] = []
        for layer in 0..<sizes.layers {
            let dimensions = AttentionCache.Dimensions(
                kvHeads: sizes.kvHeads, headDim: sizes.headDim, capacity: sizes.capacity(ofLayer: layer))
            if let window = sizes.slidingWindow(ofLayer: layer) {
                caches.append(
                    try AttentionCache(dimensions, slidingWindow: window, storage: storage.storage, on: device))
            } else {
                caches.append(try AttentionCache(dimensions, storage: storage.storage, on: device))
            }
        }
        self.caches = caches
        single = try Operands(tokens: 1, sizes, on: device)
        rotary = RotaryEmbedding(base: sizes.rotaryBase)
        newest = Array(repeating: Newest(), count: sizes.layers)
    }

    /// The position of the next token.
    public var position: Int { tokens.count }

    /// Bytes of one position's keys and values, in all layers.
    public var bytesPerToken: Int { caches.reduce(0) { $0 + $1.bytesPerToken } }

    /// Bytes of the positions now in the caches, in all layers.
    public var bytesInUse: Int {
        get throws { try caches.reduce(0) { $0 + $1.bytesPerToken * (try $1.count) } }
    }

    /// Bytes of all slots, used or not.
    public var cacheBytes: Int { caches.reduce(0) { $0 + $1.byteCount } }

    /// Bytes of this model's caches with another context length.
    public func cacheBytes(atContext context: Int) -> Int {
        var sizes = model.configuration
        sizes.context = context
        return caches.enumerated().reduce(0) { $0 + $1.element.bytesPerToken * sizes.capacity(ofLayer: $1.offset) }
    }

    /// Reads a token, and scores every byte that may follow.
    ///
    /// - Throws: ``ModelError`` if the context is full, or `KernelError` if the device fails. After a device failure the
    ///   layers' caches differ, and only ``reset()`` works.
    public func logits(after token: UInt8) throws -> [Float] { try logits(after: [token]) }

    /// Reads several tokens at once, such as a prompt, and scores every byte that may follow the last one. Without
    /// tokens, returns the newest scores.
    ///
    /// - Throws: As for a single token.
    public func logits(after text: [UInt8]) throws -> [Float] {
        guard !text.isEmpty else { return newestLogits }
        guard isWhole else {
            throw ModelError(
                code: .interrupted, what: "the device failed within an earlier token", got: "a token after it",
                expected: "a session after reset()", fix: "Call reset() and read the text again.")
        }
        let context = model.configuration.context
        guard text.count <= context - position else {
            throw ModelError(
                code: .contextFull, what: "the text is longer than the model can read",
                got: "\(position + text.count) tokens", expected: "at most \(context)", fix: "Start another text.")
        }
        let begin = now()
        let onDevice = costs.deviceWall
        let operands = text.count == 1 ? single : try Operands(tokens: text.count, model.configuration, on: device)
        isWhole = false
        var rows = text.map { model.embedding.row(Int($0)) }
        for (number, layer) in model.layers.enumerated() {
            let projected = rows.map { model.projected($0, layer) }
            try operands.queries.write(projected.flatMap(\.queries))
            try operands.keys.write(projected.flatMap(\.keys))
            try operands.values.write(projected.flatMap(\.values))
            try attend(layer: number, operands)
            let all = try operands.output.array(of: Float.self)
            let width = all.count / rows.count
            let attended = rows.indices.map { Array(all[$0 * width..<($0 + 1) * width]) }
            if let last = projected.last {
                newest[number] = Newest(
                    queries: last.queries, keys: last.keys, values: last.values, attended: attended[rows.count - 1])
            }
            for row in rows.indices {
                add(layer.output.times(attended[row]), to: &rows[row])
                add(model.feedForward(rows[row], layer), to: &rows[row])
            }
        }
        newestLogits = model.logits(rows[rows.count - 1])
        isWhole = true
        tokens += text
        costs.tokens += text.count
        costs.processorSeconds += now() - begin - (costs.deviceWall - onDevice)
        return newestLogits
    }

    /// Forgets all tokens.
    public func reset() {
        for cache in caches { cache.reset() }
        tokens = []
        newestLogits = []
        isWhole = true
        costs = DecodeCosts()
    }

    /// Rotates the layer's queries and keys, stores keys and values, and attends to all positions in the cache.
    private func attend(layer: Int, _ operands: Operands) throws {
        let cache = caches[layer]
        let begin = now()
        let done = try device.encode(label: "layer \(layer)") { step in
            if measuresOps { try step.measureOps() }
            try step.appendAndAttend(
                queries: operands.queries, keys: operands.keys, values: operands.values, rotary: RotaryStep(rotary),
                over: cache, into: operands.output)
        }
        try done.wait()
        costs.add(done.summary, wall: now() - begin)
    }
}

private func add(_ addend: [Float], to sum: inout [Float]) {
    for index in sum.indices { sum[index] += addend[index] }
}

/// Seconds of a monotonic clock.
func now() -> Double { Double(DispatchTime.now().uptimeNanoseconds) * 1e-9 }
