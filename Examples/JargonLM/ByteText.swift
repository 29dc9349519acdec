/// Text that arrives byte by byte.
///
/// Holds back the bytes of a character until it is complete. Invalid bytes and control codes become a replacement
/// character, so that no model can control a terminal.
public struct ByteText: Sendable {
    private var pending: [UInt8] = []

    public init() {}

    /// The text that this byte completes: often one character, sometimes none or several.
    public mutating func append(_ byte: UInt8) -> String {
        pending.append(byte)
        return take(isEnd: false)
    }

    /// The text of the bytes held back.
    public mutating func finish() -> String { take(isEnd: true) }

    /// The text of all these bytes.
    public static func text(_ bytes: some Sequence<UInt8>) -> String {
        var text = ByteText()
        return bytes.reduce(into: "") { $0 += text.append($1) } + text.finish()
    }

    private mutating func take(isEnd: Bool) -> String {
        var shown = ""
        while let first = pending.first {
            let length = Self.length(first)
            if length > pending.count, !isEnd, pending.dropFirst().allSatisfy({ $0 & 0xC0 == 0x80 }) { break }
            let character = Self.character(pending.prefix(length))
            shown.unicodeScalars.append(character.map { Self.isShown($0) ? $0 : "\u{FFFD}" } ?? "\u{FFFD}")
            pending.removeFirst(character == nil ? 1 : length)
        }
        return shown
    }

    /// The length of the character that this byte begins; 1 for an invalid first byte.
    private static func length(_ first: UInt8) -> Int {
        switch first {
        case 0xC2...0xDF: 2
        case 0xE0...0xEF: 3
        case 0xF0...0xF4: 4
        default: 1
        }
    }

    private static func character(_ bytes: ArraySlice<UInt8>) -> Unicode.Scalar? {
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.utf8.elementsEqual(bytes), let scalar = text.unicodeScalars.first else { return nil }
        return scalar
    }

    private static func isShown(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        // Emoji and several scripts need the two joiners.
        case "\n", "\t", "\u{200C}", "\u{200D}": true
        default: scalar.properties.generalCategory != .control && scalar.properties.generalCategory != .format
        }
    }
}
