/// The sizes of a model.
public struct Configuration: Sendable, Hashable {
    /// Kinds of tokens: every byte is one.
    public let vocabulary = 256
    /// Numbers of a token between layers.
    public var width = 256
    /// Layers.
    public var layers = 4
    /// Heads of queries.
    public var heads = 8
    /// Heads of keys and values; each serves as many heads of queries.
    public var kvHeads = 2
    /// Elements of one head.
    public var headDim = 128
    /// Numbers between the two halves of a feed-forward block.
    public var hidden = 640
    /// Positions that every second layer sees, its own included, from the first layer on; the others see all.
    public var window = 256
    /// Positions that a text may have.
    public var context = 1024
    /// The base of rotary angles.
    public var rotaryBase = 10_000.0
    /// What keeps a norm from dividing by zero.
    public var normEpsilon: Float = 1e-5

    /// The sizes of jargon-lm.
    public static let jargonLM = Configuration()

    /// Whether a layer sees the newest positions alone.
    public func isWindowed(layer: Int) -> Bool { layer.isMultiple(of: 2) }

    /// Slots of a layer's cache. A windowed layer forgets what it no longer sees.
    public func capacity(ofLayer layer: Int) -> Int { isWindowed(layer: layer) ? min(window, context) : context }

    /// Throws ``ModelError`` for sizes that no model has.
    func check() throws(ModelError) {
        // Products of two of them fit a number then, with room for the size of an element.
        let most = 1 << 20
        for (name, size) in [
            ("width", width), ("layers", layers), ("heads", heads), ("kvHeads", kvHeads), ("headDim", headDim),
            ("hidden", hidden), ("window", window), ("context", context),
        ] where size < 1 || size > most {
            throw ModelError(
                code: .invalidArgument, what: "no model has this \(name)", got: "\(size)", expected: "1 to \(most)",
                fix: "Give the sizes of the model.")
        }
        guard heads.isMultiple(of: kvHeads) else {
            throw ModelError(
                code: .invalidArgument, what: "heads of queries do not share those of keys evenly",
                got: "\(heads) over \(kvHeads)", expected: "a multiple", fix: "Give the sizes of the model.")
        }
    }
}
