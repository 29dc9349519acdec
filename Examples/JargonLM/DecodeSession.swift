import Foundation
import MLXNativeKernels

/// A text that a model is reading or writing, with the caches of all its layers.
///
/// Each token is one call of ``logits(after:)``. In every layer the processor multiplies by weights, and the device
/// rotates queries and keys, stores keys and values, and attends: one command buffer for each layer, because the next
/// multiplication needs what attention gave.
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
    /// What every layer hands to its kernels; reused, because a layer waits for its work.
    private let queries, keys, values, output: Tensor
    let rotary: RotaryEmbedding
    private let measuresOps: Bool
    /// What the newest token gave to each layer's kernels, before they rotate it.
    private(set) var newest: [Newest]

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
        queries = try .zeros(shape: [sizes.heads, sizes.headDim], on: device)
        keys = try .zeros(shape: [sizes.kvHeads, sizes.headDim], on: device)
        values = try .zeros(shape: [sizes.kvHeads, sizes.headDim], on: device)
        output = try .zeros(shape: [sizes.heads, sizes.headDim], on: device)
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
    public func logits(after token: UInt8) throws -> [Float] {
        guard isWhole else {
            throw ModelError(
                code: .interrupted, what: "the device failed within an earlier token", got: "a token after it",
                expected: "a session that is reset", fix: "Call reset() and read the text again.")
        }
        let context = model.configuration.context
        guard position < context else {
            throw ModelError(
                code: .contextFull, what: "the text is as long as the model can read", got: "\(position + 1) tokens",
                expected: "at most \(context)", fix: "Start another text.")
        }
        let begin = now()
        let onDevice = costs.deviceWall
        isWhole = false
        var numbers = model.embedding.row(Int(token))
        for (number, layer) in model.layers.enumerated() {
            let projected = model.projected(numbers, layer)
            try queries.write(projected.queries)
            try keys.write(projected.keys)
            try values.write(projected.values)
            try attend(layer: number)
            newest[number] = Newest(
                queries: projected.queries, keys: projected.keys, values: projected.values,
                attended: try output.array(of: Float.self))
            add(layer.output.times(newest[number].attended), to: &numbers)
            add(model.feedForward(numbers, layer), to: &numbers)
        }
        newestLogits = model.logits(numbers)
        isWhole = true
        tokens.append(token)
        costs.tokens += 1
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
    private func attend(layer: Int) throws {
        let cache = caches[layer]
        let begin = now()
        let done = try device.encode(label: "layer \(layer)") { step in
            if measuresOps { try step.measureOps() }
            try step.appendAndAttend(
                queries: queries, keys: keys, values: values, rotary: RotaryStep(rotary), over: cache, into: output)
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
