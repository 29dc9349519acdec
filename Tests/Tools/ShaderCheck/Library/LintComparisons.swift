/// Rules about comparisons.
extension Lint {
    private static let comparisons: Set<String> = ["==", "!=", "<=", ">="]
    /// Tokens that end an operand of a comparison, outside brackets.
    private static let ends: Set<String> = [
        ";", ",", "=", "?", ":", "&&", "||", "&", "|", "^", "return", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
    ]

    /// `x != x` is equivalent to isnan, and fast math may fold it.
    mutating func checkComparisons() {
        for index in source.tokens.indices where Self.comparisons.contains(source.text(index)) {
            let before = withoutBrackets(operand(from: index, step: -1).reversed())
            let after = withoutBrackets(operand(from: index, step: 1))
            if !before.isEmpty, before == after {
                let (operand, sign) = (before.joined(), source.text(index))
                report(
                    index,
                    "\(operand) \(sign) \(operand) may be folded by fast math: compare the bits, as_type<uint>(x)")
            }
        }
    }

    /// The tokens from the comparison on, in scan order.
    private func operand(from comparison: Int, step: Int) -> [String] {
        let opening: Set<String> = step > 0 ? ["(", "[", "{"] : [")", "]", "}"]
        let closing: Set<String> = step > 0 ? [")", "]", "}"] : ["(", "[", "{"]
        var (words, depth, index): ([String], Int, Int) = ([], 0, comparison + step)
        while source.tokens.indices.contains(index) {
            let text = source.text(index)
            if depth == 0, Self.ends.contains(text) || Self.comparisons.contains(text) || closing.contains(text) {
                break
            }
            // Backward, a body or block before the operand.
            if depth == 0, text == "{" || text == "}" { break }
            if opening.contains(text) { depth += 1 }
            if closing.contains(text) { depth -= 1 }
            words.append(text)
            index += step
        }
        return words
    }

    private func withoutBrackets(_ operand: [String]) -> [String] {
        var operand = operand[...]
        while operand.first == "(", operand.last == ")" {
            var depth = 0
            let closes = operand.firstIndex {
                depth += $0 == "(" ? 1 : $0 == ")" ? -1 : 0
                return depth == 0
            }
            guard closes == operand.endIndex - 1 else { break }
            operand = operand.dropFirst().dropLast()
        }
        return Array(operand)
    }
}
