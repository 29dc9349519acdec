/// Tokens with the structure that the rules need: brackets, declarations, functions.
struct SourceText {
    struct Function {
        let name: String
        /// The tokens before the name: `template <typename T> kernel void`.
        let head: Range<Int>
        let parameters: [Range<Int>]
        let body: Range<Int>
        let isMember: Bool
        let isKernel: Bool
        /// The index of its name.
        let at: Int
    }

    /// A declaration at file scope that is neither a function with a body nor a type: a variable, an alias, a macro.
    struct Statement {
        let range: Range<Int>
    }

    let tokens: [Token]
    private(set) var functions: [Function] = []
    private(set) var statements: [Statement] = []
    /// Names of structures, aliases, enumerations and type parameters.
    private(set) var types: Set<String> = []
    private(set) var derived: [Int] = []
    private let closing: [Int: Int]

    static let standaloneWords: Set<String> = ["instantiate_kernel", "export_kernel"]

    init(tokens: [Token]) {
        self.tokens = tokens
        closing = Self.matchBrackets(tokens)
        findTypes()
        scan(0..<tokens.count, isMember: false)
    }

    func text(_ index: Int) -> String { tokens.indices.contains(index) ? tokens[index].text : "" }
    func words(_ range: Range<Int>) -> [String] { range.map { tokens[$0].text } }

    /// The bracket that closes the one at `index`, or the last token if it is not closed.
    func close(_ index: Int) -> Int { closing[index] ?? tokens.count - 1 }

    /// The parts of a range between commas outside brackets.
    func parts(_ range: Range<Int>) -> [Range<Int>] {
        var parts: [Range<Int>] = []
        var (start, index, angles) = (range.lowerBound, range.lowerBound, 0)
        while index < range.upperBound {
            switch text(index) {
            case "(", "[", "{": index = close(index)
            case "<": angles += 1
            case ">": angles -= 1
            case "," where angles <= 0:
                parts.append(start..<index)
                start = index + 1
            default: break
            }
            index += 1
        }
        if start < range.upperBound { parts.append(start..<range.upperBound) }
        return parts
    }

    /// The angle bracket that closes the template parameters at `index`, or the last token if they are not closed.
    private func closeAngles(_ index: Int) -> Int {
        var (next, angles) = (index, 0)
        while next < tokens.count {
            switch text(next) {
            case "(", "[", "{": next = close(next)
            case "<": angles += 1
            case ">": angles -= 1
            default: break
            }
            if angles == 0 { return next }
            next += 1
        }
        return tokens.count - 1
    }

    private static func matchBrackets(_ tokens: [Token]) -> [Int: Int] {
        let pairs = ["(": ")", "[": "]", "{": "}"]
        var (open, closing): ([(String, Int)], [Int: Int]) = ([], [:])
        for (index, token) in tokens.enumerated() where token.kind == .mark {
            if let close = pairs[token.text] {
                open.append((close, index))
            } else if let last = open.last, last.0 == token.text {
                closing[last.1] = index
                open.removeLast()
            }
        }
        return closing
    }

    private mutating func findTypes() {
        for index in tokens.indices {
            switch text(index) {
            case "struct", "class", "union", "enum", "typename": types.insert(text(index + 1))
            case "using" where text(index + 2) == "=": types.insert(text(index + 1))
            case "typedef":
                if let end = tokens[index...].firstIndex(where: { $0.text == ";" }) { types.insert(text(end - 1)) }
            default: break
            }
        }
    }

    /// Splits a scope into declarations.
    private mutating func scan(_ scope: Range<Int>, isMember: Bool) {
        var (start, index) = (scope.lowerBound, scope.lowerBound)
        while index < scope.upperBound {
            if index == start, Self.standaloneWords.contains(text(index)), text(index + 1) == "(" {
                index = close(index + 1) + 1
                statements.append(Statement(range: start..<index))
                start = index
                continue
            }
            switch text(index) {
            case "(", "[":
                index = close(index)
            case ";":
                if start < index, !isMember { statements.append(Statement(range: start..<index)) }
                start = index + 1
            case "{":
                if takeBody(head: start..<index, brace: index, isMember: isMember) { start = close(index) + 1 }
                index = close(index)
            default: break
            }
            index += 1
        }
    }

    /// Whether a declaration ends with the body that opens at `brace`; the initializer of a variable does not end it.
    private mutating func takeBody(head: Range<Int>, brace: Int, isMember: Bool) -> Bool {
        let inside = brace + 1..<max(close(brace), brace + 1)
        let plain = head.drop { text($0) == "template" || text($0) == "extern" || tokens[$0].kind == .string }
        if plain.contains(where: { text($0) == "namespace" }) {
            scan(inside, isMember: isMember)
            return true
        }
        if let list = parameterList(head) {
            functions.append(
                Function(
                    name: text(list - 1), head: head.lowerBound..<list - 1,
                    parameters: parts(list + 1..<close(list)), body: inside, isMember: isMember,
                    isKernel: words(head.lowerBound..<list).contains("kernel"), at: list - 1))
            return true
        }
        if words(head).contains("enum") { return false }
        let record = head.first {
            ["struct", "class", "union"].contains(text($0)) && !isInAngles($0, from: head.lowerBound)
        }
        if let record {
            if words(record..<brace).contains(":") { derived.append(record) }
            scan(inside, isMember: true)
        }
        return false
    }

    private func isInAngles(_ index: Int, from start: Int) -> Bool {
        words(start..<index).reduce(0) { $0 + ($1 == "<" ? 1 : $1 == ">" ? -1 : 0) } > 0
    }

    /// The opening bracket of a function's parameters, if the head has one: `name ( … )`, with optional words after it.
    private func parameterList(_ head: Range<Int>) -> Int? {
        var (index, found): (Int, Int?) = (head.lowerBound, nil)
        while index < head.upperBound {
            switch text(index) {
            case "template" where text(index + 1) == "<": index = closeAngles(index + 1)
            case "=": return nil
            case "[": index = close(index)
            case "(":
                let follows = index > head.lowerBound ? tokens[index - 1] : nil
                let isOperator = words(head.lowerBound..<index).contains("operator")
                if found == nil, follows?.kind == .word || isOperator { found = index }
                index = close(index)
            default: break
            }
            index += 1
        }
        return found
    }
}
