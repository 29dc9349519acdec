import Foundation

/// The declarations in the sources of the three APIs: types with their settable properties, and enums with their cases.
/// Parses only this project's style of declarations, not the whole languages.
struct BindingLists {
    /// Settable properties by type name, in the order of declaration; `Outer.Inner` for nested types.
    var properties: [String: [String]] = [:]
    /// Cases by enum name.
    var cases: [String: [String]] = [:]

    /// All public C++ headers.
    static func cxx(_ texts: [String]) -> BindingLists {
        var lists = BindingLists()
        for text in texts.map(withoutComments) {
            // Two namespaces have their own options.
            let space = text.firstMatch(of: /namespace mnk::(\w+) \{/).map { String($0.1) }
            lists.readCxx(text, inside: space)
        }
        return lists
    }

    /// All sources of the Swift module.
    static func swift(_ texts: [String]) -> BindingLists {
        var lists = BindingLists()
        for text in texts { lists.readSwift(withoutComments(text), inside: nil) }
        return lists
    }

    /// All public Objective-C headers.
    static func objectiveC(_ texts: [String]) -> BindingLists {
        var lists = BindingLists()
        for text in texts.map(withoutComments) {
            for match in text.matches(of: /@interface (MNK\w+) : (\w+)(?s:(.*?))@end/) {
                let (name, base) = (String(match.1), match.2)
                let found = match.3.matches(of: /@property\(([^)]*)\)[^;]*?(\w+);/)
                let settable = found.filter { !$0.1.contains("readonly") }
                // Properties of an immutable class are set by its initializer.
                if base != "NSObject" {
                    lists.properties[name] = (settable.isEmpty ? found : settable).map { String($0.2) }
                }
            }
            for match in text.matches(of: /NS_(?:CLOSED_|ERROR_)ENUM\(\w+, (MNK\w+)\)\s*\{(?s:(.*?))\}/) {
                lists.cases[String(match.1)] = match.2.split(separator: ",").compactMap {
                    $0.firstMatch(of: /MNK\w+/).map { String($0.0) }
                }
            }
        }
        return lists
    }

    private mutating func readCxx(_ text: String, inside outer: String?) {
        for (head, body) in blocks(in: text, after: /((?:struct|enum class) \w+)(?: : \w+)? \{/) {
            let type = (outer.map { "\($0)." } ?? "") + head.split(separator: " ").last!
            if head.hasPrefix("enum") {
                let items = body.split(separator: ",")
                cases[type] = items.compactMap { $0.firstMatch(of: #/[A-Za-z]\w*/#).map { String($0.0) } }
                continue
            }
            let flat = withoutBlocks(body)
            properties[type] = flat.split(separator: ";").compactMap { statement in
                let declaration = statement.split(separator: "=", maxSplits: 1)[0]
                let isOther = declaration.contains(/\(|\b(static|using|struct|enum|private|friend|operator)\b/)
                let match = declaration.wholeMatch(of: #/(?s:.*[\s>&*])(\w+)(?:\{\})?\s*/#)
                return isOther ? nil : match.map { String($0.1) }
            }
            readCxx(body, inside: type)
        }
    }

    private mutating func readSwift(_ text: String, inside outer: String?) {
        for (name, body) in blocks(in: text, after: /public (?:struct|enum|final class) (\w+)[^{]*\{/) {
            let type = (outer.map { "\($0)." } ?? "") + name
            let flat = withoutBlocks(body)
            let variables = flat.matches(of: #/\n\s*public var (\w+)[^\n]*/#).filter { !$0.0.contains("{}") }
            properties[type, default: []] += variables.map { String($0.1) }
            // Associated values of a case are in parentheses, on separate lines if there are many.
            let plain = flat.replacing(/\((?s:[^()]*(?:\([^()]*\)[^()]*)*)\)/, with: "")
            let found = plain.matches(of: /\n\s*case (\w+)/).map { String($0.1) }
            if !found.isEmpty { cases[type, default: []] += found }
            readSwift(body, inside: type)
        }
        for (name, body) in blocks(in: text, after: /extension (\w+)[^{]*\{/) where outer == nil {
            readSwift(body, inside: name)
        }
    }
}

/// Every outermost block that follows a match, with the pattern's capture.
private func blocks(in text: String, after pattern: Regex<(Substring, Substring)>) -> [(String, String)] {
    var found: [(String, String)] = []
    var rest = text[...]
    while let match = rest.firstMatch(of: pattern) {
        let body = rest[match.range.upperBound...]
        let end = endOfBlock(body)
        found.append((String(match.1), String(body[..<end])))
        rest = rest[end...]
    }
    return found
}

/// The index of the brace that closes the block around the text.
private func endOfBlock(_ text: Substring) -> Substring.Index {
    var depth = 1
    for index in text.indices {
        if text[index] == "{" { depth += 1 }
        if text[index] == "}" { depth -= 1 }
        if depth == 0 { return index }
    }
    return text.endIndex
}

/// The text with `{}` in place of each block.
private func withoutBlocks(_ text: String) -> String {
    var flat = ""
    var rest = text[...]
    while let open = rest.firstIndex(of: "{") {
        let body = rest[rest.index(after: open)...]
        let end = endOfBlock(body)
        // A C++ definition with a block ends without a semicolon, unlike a field or an argument initialized with one.
        flat += rest[..<open] + "{}"
        rest = end == rest.endIndex ? "" : rest[rest.index(after: end)...]
        if let next = rest.first(where: { !$0.isWhitespace }), !";,".contains(next) { flat += ";" }
    }
    return flat + rest
}

private func withoutComments(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
        line.firstRange(of: "//").map { line[..<$0.lowerBound] } ?? line
    }.joined(separator: "\n")
}
