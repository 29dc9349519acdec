import Foundation
import MLXNativeKernels

/// How well a model predicts a text byte by byte, with one storage for keys and values.
public struct PassageScore: Sendable {
    /// The storage of keys and values.
    public let storage: StorageChoice
    /// The bits of each byte after the first: `-log2` of the probability the model assigned to it.
    public let bits: [Double]
    /// The most likely byte at each position.
    public let likeliest: [UInt8]
    /// The cost of the tokens, by op.
    public let costs: DecodeCosts
    /// Bytes of one position in all layers.
    public let bytesPerToken: Int
    /// Elements of keys and values in one position.
    public let elementsPerToken: Int
    /// `|x - x'|^2 / |x|^2` over all keys and values in the caches at the end.
    public let error: Double
    /// Bytes of all caches by context length.
    public let cacheBytes: [Int: Int]

    /// The mean of ``bits``.
    public var bitsPerByte: Double { bits.isEmpty ? 0 : bits.reduce(0, +) / Double(bits.count) }
    /// Bits of one stored element, including scales.
    public var bitsPerElement: Double { Double(8 * bytesPerToken) / Double(elementsPerToken) }
    /// Mean dispatches per token.
    public var dispatchesPerToken: Double { Double(costs.dispatches) / Double(max(costs.tokens, 1)) }

    /// The added bits per byte relative to another storage on the same passage, and the standard error of that
    /// difference. The error assumes independent bytes; they are not quite independent, so another passage may differ
    /// by more.
    public func difference(from base: PassageScore) -> (mean: Double, standardError: Double) {
        let differences = zip(bits, base.bits).map { $0 - $1 }
        let count = Double(differences.count)
        guard count > 1 else { return (differences.first ?? 0, 0) }
        let mean = differences.reduce(0, +) / count
        let squares = differences.reduce(0) { $0 + ($1 - mean) * ($1 - mean) }
        return (mean, (squares / (count - 1) / count).squareRoot())
    }

    /// The baseline: the score with the most bits per element.
    public static func base(of scores: [PassageScore]) -> PassageScore? {
        scores.reduce(nil) { base, score in
            guard let base, base.bitsPerElement >= score.bitsPerElement else { return score }
            return base
        }
    }

    /// Context lengths in ``cacheBytes``.
    public static let contexts = [1024, 32 * 1024, 128 * 1024]

    /// Reads a passage with a new session and scores each byte given those before it.
    ///
    /// - Parameters:
    ///   - passage: At least two bytes, and at most one more than the context.
    ///   - observe: Called after each token with the session; throw to stop reading.
    public init(
        of passage: [UInt8], by model: LanguageModel, storage: StorageChoice, on device: KernelDevice,
        measuresOps: Bool = true, observe: (DecodeSession) throws -> Void = { _ in }
    ) throws {
        guard passage.count >= 2 else {
            throw ModelError(
                code: .invalidArgument, what: "the passage is too short to predict", got: "\(passage.count) bytes",
                expected: "2 or more", fix: "Use a longer passage.")
        }
        let session = try DecodeSession(model, storage: storage, measuresOps: measuresOps, on: device)
        var inputs = StoredInputs(layers: session.caches.count)
        var bits: [Double] = []
        var likeliest: [UInt8] = []
        var greedy = Sampler.greedy
        for (token, next) in zip(passage, passage.dropFirst()) {
            let logits = try session.logits(after: token)
            bits.append(bitsOf(next, logits))
            likeliest.append(greedy.choose(logits))
            inputs.add(session)
            try observe(session)
        }
        self.storage = storage
        self.bits = bits
        self.likeliest = likeliest
        costs = session.costs
        bytesPerToken = session.bytesPerToken
        let sizes = model.configuration
        elementsPerToken = 2 * sizes.layers * sizes.kvHeads * sizes.headDim
        error = try inputs.error(in: session)
        cacheBytes = Dictionary(
            uniqueKeysWithValues: Self.contexts.map { ($0, session.cacheBytes(atContext: $0)) })
    }
}

/// `-log2` of a byte's probability under these scores.
func bitsOf(_ byte: UInt8, _ logits: [Float]) -> Double {
    let highest = Double(logits.max() ?? 0)
    let sum = logits.reduce(0.0) { $0 + exp(Double($1) - highest) }
    return (log(sum) + highest - Double(logits[Int(byte)])) / log(2.0)
}

/// Keys and values before they were stored; keys are not rotated.
private struct StoredInputs {
    private var keys: [[Float]]
    private var values: [[Float]]

    init(layers: Int) {
        keys = Array(repeating: [], count: layers)
        values = keys
    }

    mutating func add(_ session: DecodeSession) {
        for (layer, newest) in session.newest.enumerated() {
            keys[layer] += newest.keys
            values[layer] += newest.values
        }
    }

    func error(in session: DecodeSession) throws -> Double {
        var lost = 0.0
        var all = 0.0
        for layer in keys.indices {
            let held = try session.held(byLayer: layer)
            guard !held.isEmpty else { continue }
            let rotated = try session.rotated(keys[layer], heads: session.model.configuration.kvHeads, from: 0)
            let stored = [
                (rotated, try session.stored(.keys, byLayer: layer)),
                (values[layer], try session.stored(.values, byLayer: layer)),
            ]
            for (inputs, kept) in stored {
                for (number, again) in zip(inputs.suffix(kept.count), kept) {
                    lost += Double(number - again) * Double(number - again)
                    all += Double(number) * Double(number)
                }
            }
        }
        return all > 0 ? lost / all : 0
    }
}
