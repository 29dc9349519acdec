/// A value of an old-style property list, the format of project.pbxproj, with its first line. Foundation also reads the
/// format, but without lines, and silently drops one of two objects with the same identifier.
struct Value: Sendable {
    enum Kind: Sendable {
        case text(String)
        case list([Value])
        case table([Entry])
    }

    struct Entry: Sendable {
        let key: String
        let line: Int
        let value: Value
    }

    let line: Int
    let kind: Kind

    var text: String? { if case .text(let text) = kind { text } else { nil } }
    var list: [Value]? { if case .list(let list) = kind { list } else { nil } }
    var table: [Entry]? { if case .table(let table) = kind { table } else { nil } }

    subscript(_ key: String) -> Value? { table?.first { $0.key == key }?.value }
}

struct PropertyListText {
    struct Mistake: Error {
        let line: Int
        let message: String
    }

    /// More than Xcode ever writes; without a limit, a malicious text could exhaust the stack.
    private static let deepest = 64

    private let bytes: [UInt8]
    private var position = 0
    private var line = 1

    static func read(_ text: String) throws(Mistake) -> Value {
        var reader = PropertyListText(bytes: Array(text.utf8))
        let value = try reader.value(depth: 0)
        try reader.skip()
        guard reader.next == nil else { throw reader.mistake("the text goes on after its end. Remove the rest.") }
        return value
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private func mistake(_ message: String) -> Mistake { Mistake(line: line, message: message) }

    private func expected(_ what: String) -> Mistake {
        let got = next.map { "\"\(Character(UnicodeScalar($0)))\"" } ?? "the end of the file"
        return mistake("\(what) is missing (got \(got)). Add it.")
    }

    private mutating func advance() {
        if next == UInt8(ascii: "\n") { line += 1 }
        position += 1
    }

    private func starts(with mark: StaticString) -> Bool {
        bytes[min(position, bytes.count)...].starts(with: mark.withUTF8Buffer { Array($0) })
    }

    private mutating func skip() throws(Mistake) {
        while let byte = next {
            if byte == UInt8(ascii: " ") || (9...13).contains(byte) {
                advance()
            } else if starts(with: "//") {
                while let byte = next, byte != UInt8(ascii: "\n") { advance() }
            } else if starts(with: "/*") {
                let begin = line
                while next != nil, !starts(with: "*/") { advance() }
                if next == nil { throw Mistake(line: begin, message: "the comment does not end. Add */.") }
                position += 2
            } else {
                return
            }
        }
    }

    private mutating func take(_ mark: Character) throws(Mistake) {
        try skip()
        guard next == mark.asciiValue else { throw expected("\"\(mark)\"") }
        advance()
    }

    private mutating func takes(_ mark: Character) throws(Mistake) -> Bool {
        try skip()
        guard next == mark.asciiValue else { return false }
        advance()
        return true
    }

    private mutating func value(depth: Int) throws(Mistake) -> Value {
        try skip()
        let begin = line
        guard depth < Self.deepest else { throw mistake("values lie more than \(Self.deepest) deep. Flatten them.") }
        switch next {
        case UInt8(ascii: "{"): return Value(line: begin, kind: .table(try table(depth)))
        case UInt8(ascii: "("): return Value(line: begin, kind: .list(try list(depth)))
        default: return Value(line: begin, kind: .text(try word()))
        }
    }

    private mutating func table(_ depth: Int) throws(Mistake) -> [Value.Entry] {
        var entries: [Value.Entry] = []
        try take("{")
        while try !takes("}") {
            let begin = line
            let key = try word()
            try take("=")
            entries.append(Value.Entry(key: key, line: begin, value: try value(depth: depth + 1)))
            try take(";")
        }
        return entries
    }

    private mutating func list(_ depth: Int) throws(Mistake) -> [Value] {
        var values: [Value] = []
        try take("(")
        while try !takes(")") {
            values.append(try value(depth: depth + 1))
            if try takes(",") { continue }
            try take(")")
            break
        }
        return values
    }

    private mutating func word() throws(Mistake) -> String {
        if next == UInt8(ascii: "\"") { return try quoted() }
        let begin = position
        while let byte = next, Self.isPlain(byte) { advance() }
        guard position > begin else { throw expected("a word") }
        return String(decoding: bytes[begin..<position], as: UTF8.self)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch UnicodeScalar(byte) {
        case "a"..."z", "A"..."Z", "0"..."9", "_", "$", "/", ":", ".", "-": true
        default: false
        }
    }

    private mutating func quoted() throws(Mistake) -> String {
        let begin = line
        var text: [UInt8] = []
        advance()
        while let byte = next {
            advance()
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = next else { break }
                text.append(escaped == UInt8(ascii: "n") ? UInt8(ascii: "\n") : escaped)
                advance()
            default: text.append(byte)
            }
        }
        throw Mistake(line: begin, message: "the string does not end. Add a quote.")
    }
}
