/// The elements of an XML text with their lines. Sufficient for schemes, which have only attributes. Foundation's
/// parser on Linux accepts a truncated text.
struct MarkupText {
    struct Element {
        let name: String
        let line: Int
        let attributes: [String: String]
    }

    struct Mistake: Error {
        let line: Int
        let message: String
    }

    private let characters: [UInt8]
    private var position = 0
    private var line = 1

    static func read(_ text: String) throws(Mistake) -> [Element] {
        var reader = MarkupText(characters: Array(text.utf8))
        return try reader.elements()
    }

    private init(characters: [UInt8]) { self.characters = characters }

    private var next: UInt8? { position < characters.count ? characters[position] : nil }

    private mutating func take(until isEnd: (UInt8) -> Bool) -> String {
        let begin = position
        while let byte = next, !isEnd(byte) {
            if byte == UInt8(ascii: "\n") { line += 1 }
            position += 1
        }
        return String(decoding: characters[begin..<position], as: UTF8.self)
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || (9...13).contains(byte) }

    private mutating func elements() throws(Mistake) -> [Element] {
        var (found, open): ([Element], [String]) = ([], [])
        while true {
            _ = take { $0 == UInt8(ascii: "<") }
            guard next != nil else { break }
            position += 1
            let begin = line
            let name = take { Self.isSpace($0) || "/>".utf8.contains($0) }
            if name.hasPrefix("!") {
                _ = take { $0 == UInt8(ascii: ">") }
                continue
            }
            let isEnd = name.isEmpty && next == UInt8(ascii: "/")
            if isEnd {
                position += 1
                let ended = take { Self.isSpace($0) || $0 == UInt8(ascii: ">") }
                guard open.popLast() == ended else {
                    throw Mistake(line: begin, message: "</\(ended)> ends what was not begun. Correct it.")
                }
                continue
            }
            let attributes = try attributes()
            if name.hasPrefix("?") { continue }
            found.append(Element(name: name, line: begin, attributes: attributes))
            let endsItself = characters[position - 2] == UInt8(ascii: "/")
            if !endsItself { open.append(name) }
        }
        if let unended = open.last {
            throw Mistake(line: line, message: "<\(unended)> does not end. Add </\(unended)>.")
        }
        if found.isEmpty { throw Mistake(line: 1, message: "there is no element. Restore the file.") }
        return found
    }

    /// Reads to the end of the tag.
    private mutating func attributes() throws(Mistake) -> [String: String] {
        var attributes: [String: String] = [:]
        while true {
            _ = take { !Self.isSpace($0) && !"?/".utf8.contains($0) }
            guard next != UInt8(ascii: ">") else { break }
            let name = take { Self.isSpace($0) || "=>".utf8.contains($0) }
            _ = take { !Self.isSpace($0) && $0 != UInt8(ascii: "=") }
            guard !name.isEmpty, next == UInt8(ascii: "\"") else {
                throw Mistake(line: line, message: "an attribute has no value in quotes. Write NAME = \"VALUE\".")
            }
            position += 1
            attributes[name] = take { $0 == UInt8(ascii: "\"") }
            guard next != nil else { throw Mistake(line: line, message: "a string does not end. Add a quote.") }
            position += 1
        }
        position += 1
        return attributes
    }
}
