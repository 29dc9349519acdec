/// A number of threads or threadgroups along up to three axes.
///
/// ```swift
/// GridSize(1024)          // 1024 × 1 × 1
/// GridSize(64, 8)         // 64 × 8 × 1
/// ```
public struct GridSize: Sendable, Hashable {
    /// Along the first axis.
    public var width: Int
    /// Along the second axis.
    public var height: Int
    /// Along the third axis.
    public var depth: Int

    /// A size of these extents.
    public init(_ width: Int, _ height: Int = 1, _ depth: Int = 1) {
        self.width = width
        self.height = height
        self.depth = depth
    }

    typealias Extents = (UInt32, UInt32, UInt32)

    init(_ extents: Extents) { self.init(Int(extents.0), Int(extents.1), Int(extents.2)) }

    func extents(_ name: String, op: String) throws(KernelError) -> Extents {
        (
            try UInt32(width, "the width of \(name)", op: op), try UInt32(height, "the height of \(name)", op: op),
            try UInt32(depth, "the depth of \(name)", op: op)
        )
    }
}

extension GridSize: CustomStringConvertible {
    /// The three extents: `64 × 8 × 1`.
    public var description: String { "\(width) × \(height) × \(depth)" }
}
