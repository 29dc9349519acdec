/// The sizes of a model.
public struct Configuration: Sendable, Hashable {
    /// Kinds of tokens: every byte is one.
    public let vocabulary = 256
    public var width = 256
    public var layers = 4
    public var heads = 8
    public var kvHeads = 2
    public var headDim = 128
    /// Elements between the two halves of a feed-forward block.
    public var hidden = 640
    /// Positions that every second layer sees, its own included, from the first layer on; the others see all.
    public var window = 256
    /// Positions that a text may have.
    public var context = 1024
    public var rotaryBase = 10_000.0
    public var normEpsilon: Float = 1e-5

    /// The sizes of jargon-lm.
    public static let jargonLM = Configuration()

    /// Whether a layer sees the newest positions alone.
    public func isWindowed(layer: Int) -> Bool { layer.isMultiple(of: 2) }

    /// Slots of a layer's cache. A windowed layer forgets what it no longer sees.
    public func capacity(ofLayer layer: Int) -> Int { isWindowed(layer: layer) ? min(window, context) : context }
}
