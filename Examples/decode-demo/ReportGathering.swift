import Foundation
import JargonLM
import MLXNativeKernels

/// Observes running sessions and collects the contents of a report.
struct ReportGathering {
    /// The number of tokens in an attention map, and the number of tokens between two samples of a ring.
    private static let attentionTokens = 72
    private static let ringStep = 8

    let isWanted: Bool
    private var ring: [ReportRing.Sample] = []

    init(isWanted: Bool) { self.isWanted = isWanted }

    /// Records the contents of the first layer's slots; this layer is windowed.
    mutating func watchRing(_ session: DecodeSession) throws {
        guard isWanted, session.position.isMultiple(of: Self.ringStep) else { return }
        ring.append(.init(newest: session.position - 1, slots: try session.slots(ofLayer: 0)))
    }

    /// The contents of the report. `observe` receives the completed fraction and stops the work by throwing.
    func data(
        prompt: [UInt8], text: [UInt8], writing: String, scores: [PassageScore], model: LanguageModel,
        device: KernelDevice, observe: (Double) throws -> Void
    ) throws -> ReportData {
        let sizes = model.configuration
        let base = PassageScore.base(of: scores)
        return ReportData(
            title: "Decoding with jargon-lm",
            device: deviceDescription(device),
            model: "jargon-lm, \(decimalText(Double(model.parameterCount) / 1e6, digits: 2)) M parameters, "
                + "\(sizes.layers) layers, \(sizes.heads) query heads and \(sizes.kvHeads) key/value heads, "
                + "head dim \(sizes.headDim)",
            passage: "\(scores.first?.bits.count ?? 0) bytes of held-out text, each predicted from the bytes before it",
            system: "\(ProcessInfo.processInfo.operatingSystemVersionString), "
                + "\(ProcessInfo.processInfo.activeProcessorCount) cores",
            prompt: String(decoding: prompt, as: UTF8.self),
            continuation: ByteText.text(text.dropFirst(prompt.count)),
            writing: writing,
            rows: scores.map { ReportRow($0, base: base ?? $0) },
            attention: try attention(Array(text.prefix(Self.attentionTokens)), model, device, observe),
            ring: ReportRing(
                layer: 0, window: sizes.seen(byLayer: 0), capacity: sizes.capacity(ofLayer: 0), samples: ring))
    }

    /// Reads the text again, and returns the attention of one head of the last layer, which sees all positions.
    private func attention(
        _ text: [UInt8], _ model: LanguageModel, _ device: KernelDevice, _ observe: (Double) throws -> Void
    ) throws -> ReportAttention {
        let session = try DecodeSession(model, storage: .f16, on: device)
        let layer = model.configuration.layers - 1
        var heads = [[[Double]]](repeating: [], count: model.configuration.heads)
        for token in text {
            try observe(Double(session.position) / Double(text.count))
            _ = try session.logits(after: token)
            let weights = try session.attention(layer: layer, heads: heads.indices)
            for head in heads.indices { heads[head].append(weights[head].map(Double.init)) }
        }
        let head = heads.indices.max { reach(heads[$0]) < reach(heads[$1]) } ?? 0
        return ReportAttention(
            layer: layer, head: head, storage: session.storage.name, firstPosition: 0,
            tokens: session.tokens.map { ByteText.text([$0]) }, weights: heads[head])
    }

    /// The mean distance that a head attends back; the head with the largest is shown.
    private func reach(_ rows: [[Double]]) -> Double {
        rows.enumerated().reduce(0) { sum, row in
            sum + row.element.enumerated().reduce(0) { $0 + Double(row.offset - $1.offset) * $1.element }
        }
    }
}

extension ReportRow {
    init(_ score: PassageScore, base: PassageScore) {
        let tokens = Double(max(score.costs.tokens, 1))
        self.init(
            name: score.storage.name, bytesPerToken: score.bytesPerToken, bitsPerElement: score.bitsPerElement,
            bitsPerByte: score.bitsPerByte, standardError: score.difference(from: base).standardError,
            error: score.error,
            cacheSizes: PassageScore.contexts.map { CacheSize(context: $0, bytes: score.cacheBytes[$0] ?? 0) },
            dispatchesPerToken: score.dispatchesPerToken,
            parts: score.costs.shares.map {
                Part(name: $0.name, secondsPerToken: $0.seconds / tokens, isKernel: $0.isKernel)
            })
    }
}
