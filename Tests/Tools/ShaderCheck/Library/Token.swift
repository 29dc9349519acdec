import Foundation

struct Token: Equatable, Sendable {
    enum Kind: Sendable { case word, number, string, mark }

    let text: String
    let kind: Kind
    let file: String
    let line: Int
}

/// Splits preprocessed source into tokens. A line such as `# 12 "Kernels/Copy.metal"` gives the origin of what follows.
struct Tokenizer {
    private let bytes: [UInt8]
    private var position = 0
    private var file: String
    private var line = 1
    private var tokens: [Token] = []

    static func tokens(of text: String, file: String, shown: (String) -> String) -> [Token] {
        var tokenizer = Tokenizer(bytes: Array(text.utf8), file: file)
        tokenizer.readAll(shown)
        return tokenizer.tokens
    }

    private init(bytes: [UInt8], file: String) {
        self.bytes = bytes
        self.file = file
    }

    private static let pairs: Set<String> = [
        "::", "->", "&&", "||", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--",
        "<<",
    ]

    private mutating func readAll(_ shown: (String) -> String) {
        var startsLine = true
        while position < bytes.count {
            let byte = bytes[position]
            switch byte {
            case UInt8(ascii: "\n"):
                line += 1
                position += 1
                startsLine = true
                continue
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"):
                position += 1
                continue
            case UInt8(ascii: "#") where startsLine:
                readDirective(shown)
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                append(.string, through: endOfString(byte))
            case _ where isDigit(byte) || (byte == UInt8(ascii: ".") && isDigit(at(position + 1))):
                append(.number, through: endOfNumber())
            case _ where isWord(byte):
                append(.word, through: end(isWord))
            default:
                let two = String(decoding: bytes[position..<min(position + 2, bytes.count)], as: UTF8.self)
                append(.mark, through: position + (Self.pairs.contains(two) ? 2 : 1))
            }
            startsLine = false
        }
    }

    private mutating func append(_ kind: Token.Kind, through end: Int) {
        let text = String(decoding: bytes[position..<end], as: UTF8.self)
        tokens.append(Token(text: text, kind: kind, file: file, line: line))
        position = end
    }

    private mutating func readDirective(_ shown: (String) -> String) {
        let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
        let directive = String(decoding: bytes[position..<end], as: UTF8.self)
        if let marker = directive.firstMatch(of: /^# (\d+) "(.*)"/), let number = Int(marker.1) {
            line = number - 1  // the end of this line increments it
            file = shown(String(marker.2))
        }
        position = end
    }

    private func at(_ index: Int) -> UInt8 { index < bytes.count ? bytes[index] : 0 }
    private func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
    private func isWord(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "_") || isDigit(byte) || byte >= 0x80
            || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }

    private func end(_ belongs: (UInt8) -> Bool) -> Int {
        bytes[position...].firstIndex { !belongs($0) } ?? bytes.count
    }

    private func endOfString(_ quote: UInt8) -> Int {
        var index = position + 1
        while index < bytes.count, bytes[index] != quote, bytes[index] != UInt8(ascii: "\n") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(index + 1, bytes.count)
    }

    private func endOfNumber() -> Int {
        let isHex = at(position) == UInt8(ascii: "0") && at(position + 1) | 0x20 == UInt8(ascii: "x")
        let exponent = UInt8(ascii: isHex ? "p" : "e")
        var index = position + 1
        while index < bytes.count {
            let byte = bytes[index]
            let isSign = byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-")
            let isSeparator = byte == UInt8(ascii: "'") && isWord(at(index + 1))  // 0b1010'1010
            let isSigned = isSign && bytes[index - 1] | 0x20 == exponent
            guard isWord(byte) || byte == UInt8(ascii: ".") || isSigned || isSeparator else { break }
            index += 1
        }
        return index
    }
}
