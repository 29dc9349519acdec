import MLXNativeKernels

/// The sizes of a model.
public struct Configuration: Sendable, Hashable {
    /// The size of the vocabulary: every byte is a token.
    public let vocabulary = 256
    /// Elements of a token between layers.
    public var width = 256
    /// Layers.
    public var layers = 4
    /// Query heads.
    public var heads = 8
    /// Key/value heads; each serves the same number of query heads.
    public var kvHeads = 2
    /// Elements of one head.
    public var headDim = 128
    /// Elements between the two halves of a feed-forward block.
    public var hidden = 640
    /// Positions that every other layer sees, including its own, starting with the first layer; the others see all.
    public var window = 256
    /// The maximum length of a text.
    public var context = 1024
    /// The base of rotary angles.
    public var rotaryBase = 10_000.0
    /// Added to a norm's divisor, which must not be zero.
    public var normEpsilon: Float = 1e-5

    /// The sizes of jargon-lm.
    public static let jargonLM = Configuration()

    /// Whether a layer sees only the newest positions.
    public func isWindowed(layer: Int) -> Bool { layer.isMultiple(of: 2) }

    /// Positions that a layer sees, including a token's own.
    public func seen(byLayer layer: Int) -> Int { isWindowed(layer: layer) ? min(window, context) : context }

    /// The window of a windowed layer; `nil` for a layer that sees all positions.
    public func slidingWindow(ofLayer layer: Int) -> SlidingWindow? {
        isWindowed(layer: layer) ? SlidingWindow(window: seen(byLayer: layer)) : nil
    }

    /// Slots of a layer's cache. A windowed layer keeps its window, and slots for the other rows of a step.
    public func capacity(ofLayer layer: Int) -> Int {
        seen(byLayer: layer) + (slidingWindow(ofLayer: layer).map { $0.maxRows - 1 } ?? 0)
    }

    /// Throws ``ModelError`` for sizes out of range.
    func check() throws(ModelError) {
        // Keeps the product of any two sizes and an element's size within an integer.
        let most = 1 << 20
        for (name, size) in [
            ("width", width), ("layers", layers), ("heads", heads), ("kvHeads", kvHeads), ("headDim", headDim),
            ("hidden", hidden), ("window", window), ("context", context),
        ] where size < 1 || size > most {
            throw ModelError(
                code: .invalidArgument, what: "the model's \(name) is out of range", got: "\(size)",
                expected: "1 to \(most)",
                fix: "Pass the sizes of the model.")
        }
        guard heads.isMultiple(of: kvHeads) else {
            throw ModelError(
                code: .invalidArgument, what: "query heads do not divide evenly among key/value heads",
                got: "\(heads) over \(kvHeads)", expected: "a multiple of the key/value heads",
                fix: "Pass the sizes of the model.")
        }
    }
}
