/// Rules about single tokens.
extension Lint {
    /// C++ keywords that Metal lacks and the strict compile accepts.
    private static let foreignWords: Set<String> = ["goto", "asm", "noexcept"]

    /// Names that Metal reserves. Those that kernels use as intended are macros in the strict compile, which fails if
    /// one of them names something else.
    private static let reservedWords: Set<String> = [
        "vertex", "fragment", "threadgroup_imageblock", "ray_data", "object_data", "sampler", "main", "std",
    ]

    mutating func checkTokens() {
        for (index, token) in source.tokens.enumerated() where token.kind == .word {
            if Self.foreignWords.contains(token.text) {
                report(index, "\(token.text) is no word of Metal")
            }
            if Self.reservedWords.contains(token.text) {
                report(index, "\(token.text) is a reserved name of Metal: choose another")
            }
            if token.text == "long", source.text(index + 1) == "long" {
                report(index, "long long is no type of Metal: write long, which has 64 bits")
            }
            if token.text.hasPrefix("__") || token.text.wholeMatch(of: /_[A-Z].*/) != nil {
                report(index, "\(token.text) is an internal name of a compiler")
            }
        }
    }

    /// The Metal attributes that kernels use. Most C++ attributes need C++17, and the others do not help a kernel.
    private static let attributes: Set<String> = Lint.positions.union(Lint.counts).union([
        "buffer", "threadgroup_memory", "function_constant", "max_total_threads_per_threadgroup",
    ])

    mutating func checkAttributes() {
        for index in source.tokens.indices where source.text(index) == "[" && source.text(index + 1) == "[" {
            for part in source.parts(index + 2..<max(source.close(index + 1), index + 2)) {
                let name = source.words(part).prefix { $0 != "(" }.joined()
                if !Self.attributes.contains(name) {
                    report(part.lowerBound, "attribute \(name) is not one of those that Metal 3.1 gives kernels")
                }
            }
        }
    }

    mutating func checkLiterals() {
        for (index, token) in source.tokens.enumerated() where token.kind == .number {
            let text = token.text.lowercased()
            let isHex = text.hasPrefix("0x")
            let isFloating = text.contains(".") || text.contains(isHex ? "p" : "e")
            if isFloating, !text.hasSuffix("f"), !text.hasSuffix("h") {
                report(index, "\(token.text) is a floating literal without f or h")
            }
        }
    }
}
