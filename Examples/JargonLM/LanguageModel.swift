import Foundation

/// The weights of a transformer that reads and writes bytes, and its computation outside attention.
///
/// Each layer updates a token's vector as
///
///     x += o * attention(rotated q, k, v)       q, k, v = their matrices * norm(x)
///     x += down * (silu(gate * y) .* (up * y))  y = norm(x)
///
/// and `embed * norm(x)` scores every byte that may come next. ``DecodeSession`` runs rotary embedding, caches and
/// attention as kernels.
public final class LanguageModel: Sendable {
    struct Layer: Sendable {
        let attentionNorm: [Float]
        /// Queries, keys and values stacked in one matrix, because they multiply the same vector.
        let projections: Matrix
        let output: Matrix
        let feedForwardNorm: [Float]
        /// Gate and up stacked in one matrix.
        let gateAndUp: Matrix
        let down: Matrix
    }

    /// Its sizes.
    public let configuration: Configuration
    let embedding: Matrix
    let layers: [Layer]
    let finalNorm: [Float]

    /// The model in this package.
    public static func bundled() throws(ModelError) -> LanguageModel {
        try LanguageModel(contentsOf: modelFolder().appendingPathComponent("jargon-lm.safetensors"))
    }

    /// A model of these sizes from a file of weights.
    public convenience init(contentsOf file: URL, configuration: Configuration = .jargonLM) throws(ModelError) {
        try self.init(Safetensors(contentsOf: file), configuration: configuration)
    }

    /// A model of these sizes from loaded weights.
    public init(_ weights: Safetensors, configuration: Configuration = .jargonLM) throws(ModelError) {
        try configuration.check()
        let sizes = configuration
        func vector(_ name: String) throws(ModelError) -> [Float] {
            try weights.tensor(name + ".weight", shape: [sizes.width]).elements
        }
        func matrix(_ name: String, _ rows: Int, _ columns: Int) throws(ModelError) -> Safetensors.Entry {
            try weights.tensor(name + ".weight", shape: [rows, columns])
        }
        let queryWidth = sizes.heads * sizes.headDim
        let keyWidth = sizes.kvHeads * sizes.headDim
        var layers: [Layer] = []
        for number in 0..<sizes.layers {
            let name = "layers.\(number)."
            layers.append(
                Layer(
                    attentionNorm: try vector(name + "attn_norm"),
                    projections: Matrix(
                        try matrix(name + "q", queryWidth, sizes.width),
                        try matrix(name + "k", keyWidth, sizes.width),
                        try matrix(name + "v", keyWidth, sizes.width)),
                    output: Matrix(try matrix(name + "o", sizes.width, queryWidth)),
                    feedForwardNorm: try vector(name + "ffn_norm"),
                    gateAndUp: Matrix(
                        try matrix(name + "gate", sizes.hidden, sizes.width),
                        try matrix(name + "up", sizes.hidden, sizes.width)),
                    down: Matrix(try matrix(name + "down", sizes.width, sizes.hidden))))
        }
        embedding = Matrix(try matrix("embed", sizes.vocabulary, sizes.width))
        finalNorm = try vector("norm")
        self.layers = layers
        self.configuration = configuration
    }

    /// The number of weights.
    public var parameterCount: Int {
        layers.reduce(embedding.count + finalNorm.count) { count, layer in
            let matrices = [layer.projections, layer.output, layer.gateAndUp, layer.down]
            return matrices.reduce(count + layer.attentionNorm.count + layer.feedForwardNorm.count) { $0 + $1.count }
        }
    }

    /// `x / sqrt(mean(x^2) + epsilon) .* weight`
    func normalized(_ vector: [Float], _ weight: [Float]) -> [Float] {
        let square = vector.reduce(0) { $0 + $1 * $1 } / Float(vector.count)
        let factor = 1 / (square + configuration.normEpsilon).squareRoot()
        return zip(vector, weight).map { $0 * factor * $1 }
    }

    /// Queries, keys and values of a token, before rotation.
    func projected(
        _ vector: [Float], _ layer: Layer
    ) -> (queries: [Float], keys: [Float], values: [Float]) {
        let all = layer.projections.times(normalized(vector, layer.attentionNorm))
        let keys = configuration.heads * configuration.headDim
        let values = keys + configuration.kvHeads * configuration.headDim
        return (Array(all[..<keys]), Array(all[keys..<values]), Array(all[values...]))
    }

    func feedForward(_ vector: [Float], _ layer: Layer) -> [Float] {
        let both = layer.gateAndUp.times(normalized(vector, layer.feedForwardNorm))
        let gate = both[..<configuration.hidden]
        let up = both[configuration.hidden...]
        return layer.down.times(zip(gate, up).map { $0 / (1 + exp(-$0)) * $1 })
    }

    func logits(_ vector: [Float]) -> [Float] { embedding.times(normalized(vector, finalNorm)) }
}

/// The folder of the model in this package: its weights, its card, a passage and reference results.
///
/// In an app it is a resource. A package's resources are in a bundle next to the executable, or in the app; SwiftPM's
/// own accessor ends the process if there is none.
public func modelFolder() throws(ModelError) -> URL {
    let name = "jargon-lm"
    let bundles = [Bundle.main, Bundle(for: LanguageModel.self)]
    if let folder = bundles.lazy.compactMap({ $0.url(forResource: name, withExtension: nil) }).first { return folder }
    let places = bundles.flatMap { bundle in
        [bundle.resourceURL, bundle.bundleURL, bundle.bundleURL.deletingLastPathComponent()].compactMap { $0 }
    }
    for place in places {
        for suffix in ["resources", "bundle"] {
            let resources = place.appendingPathComponent("MLXNativeKernelsExamples_JargonLM.\(suffix)")
            if let folder = Bundle(url: resources)?.url(forResource: name, withExtension: nil) { return folder }
        }
    }
    throw ModelError(
        code: .fileNotFound, what: "the model is not among the resources", got: "\(places.map(\.path))",
        expected: "a folder \(name) in one of them",
        fix: "Build the whole package, and keep its resources next to the executable.")
}
