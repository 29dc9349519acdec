import Foundation
import MLXNativeKernels

/// A text that a model is reading or writing, with the caches of all its layers.
///
/// Each token, or all tokens of a prompt, are one call of `logits(after:)`. In every layer the processor multiplies by
/// weights, and the device rotates queries and keys, stores keys and values, and attends: one command buffer for each
/// layer, because the next multiplication needs what attention gave.
///
/// A session belongs to one thread at a time.
public final class DecodeSession {
    /// Whose weights are used.
    public let model: LanguageModel
    /// Where kernels run.
    public let device: KernelDevice
    /// How keys and values are kept.
    public let storage: StorageChoice
    /// One cache for each layer. Windowed layers have rings of as many slots as their window has positions.
    public let caches: [AttentionCache]
    /// What tokens have cost so far.
    public private(set) var costs = DecodeCosts()
    /// The tokens that were read, oldest first.
    public private(set) var tokens: [UInt8] = []
    /// The scores of bytes that may follow the newest token; empty before the first.
    public private(set) var newestLogits: [Float] = []

    /// Whether all layers have read the same tokens. They have not after a failure within a token.
    private var isWhole = true
    /// What a single token hands to each layer's kernels.
    private let single: Operands
    let rotary: RotaryEmbedding
    private let measuresOps: Bool
    /// What the newest token gave to each layer's kernels, before they rotate it.
    private(set) var newest: [Newest]

    /// What every layer hands to its kernels; reused, because a layer waits for its work.
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
        /// What attention made of them.
        var attended: [Float] = []
    }

    /// A session that has read nothing.
    ///
    /// - Parameter measuresOps: Whether ``costs`` have the time of each op; measuring takes some.
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
            let capacity = sizes.capacity(ofLayer: layer)
            caches.append(
                sizes.isWindowed(layer: layer)
                    ? try AttentionCache(
                        .init(kvHeads: sizes.kvHeads, headDim: sizes.headDim),
                        slidingWindow: SlidingWindow(window: capacity), storage: storage.storage, on: device)
                    : try AttentionCache(
                        .init(kvHeads: sizes.kvHeads, headDim: sizes.headDim, capacity: capacity),
                        storage: storage.storage, on: device))
        }
        self.caches = caches
        single = try Operands(tokens: 1, sizes, on: device)
        rotary = RotaryEmbedding(base: sizes.rotaryBase)
        newest = Array(repeating: Newest(), count: sizes.layers)
    }

    /// The position that the next token gets.
    public var position: Int { tokens.count }

    /// Bytes of keys and values of one position, in all layers.
    public var bytesPerToken: Int { caches.reduce(0) { $0 + $1.bytesPerToken } }

    /// Bytes of the positions that are held now, in all layers.
    public var bytesInUse: Int { caches.reduce(0) { $0 + $1.bytesPerToken * $1.count } }

    /// Bytes of all slots, taken or not.
    public var cacheBytes: Int { caches.reduce(0) { $0 + $1.bytes } }

    /// Bytes that caches of this model would take in all, if texts could be so long.
    public func cacheBytes(atContext context: Int) -> Int {
        var sizes = model.configuration
        sizes.context = context
        return caches.enumerated().reduce(0) { $0 + $1.element.bytesPerToken * sizes.capacity(ofLayer: $1.offset) }
    }

    /// Reads a token, and scores every byte that may follow it.
    ///
    /// - Throws: ``ModelError`` when the context is full, or `KernelError` where the device fails. After such a failure
    ///   layers disagree about the text: nothing but ``reset()`` works then.
    public func logits(after token: UInt8) throws -> [Float] { try logits(after: [token]) }

    /// Reads tokens at once, as those of a prompt, and scores every byte that may follow the last of them. Without
    /// tokens, these are the newest scores.
    ///
    /// - Throws: As for a single token.
    public func logits(after text: [UInt8]) throws -> [Float] {
        guard !text.isEmpty else { return newestLogits }
        guard isWhole else {
            throw ModelError(
                code: .interrupted, what: "the device failed within an earlier token", got: "a token after it",
                expected: "a session that is reset", fix: "Call reset() and read the text again.")
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

    /// Forgets everything that was read.
    public func reset() {
        for cache in caches { cache.reset() }
        tokens = []
        newestLogits = []
        isWhole = true
        costs = DecodeCosts()
    }

    /// Rotates the layer's queries and keys, stores keys and values, and attends to all that the cache holds then.
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

/// Seconds of a clock that never goes back.
func now() -> Double { Double(DispatchTime.now().uptimeNanoseconds) * 1e-9 }
