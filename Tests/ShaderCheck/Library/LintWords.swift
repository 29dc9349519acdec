/// Rules about single tokens.
extension Lint {
    /// Words of C++ that Metal has not and the strict compile takes.
    private static let foreignWords: Set<String> = ["goto", "asm", "noexcept"]

    /// Words that Metal takes for itself. Those that kernels use in their own meaning are macros of the strict compile,
    /// which breaks where one of them names something else.
    private static let reservedWords: Set<String> = [
        "vertex", "fragment", "threadgroup_imageblock", "ray_data", "object_data", "sampler", "main", "std",
    ]

    /// Names of the compiler that a header of ours needs: Metal's library has no offsetof.
    private static let allowedInternals: Set<String> = ["__builtin_offsetof"]

    mutating func checkWords() {
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
            let isInternal = token.text.hasPrefix("__") || token.text.wholeMatch(of: /_[A-Z].*/) != nil
            if isInternal, !Self.allowedInternals.contains(token.text) {
                report(index, "\(token.text) is an internal name of a compiler")
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
