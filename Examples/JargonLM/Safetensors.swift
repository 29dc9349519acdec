import Foundation

/// A safetensors file: named tensors of floats.
///
///     8 bytes   length of the header, little-endian
///     header    JSON: name -> { dtype, shape, data_offsets: [begin, end] }
///     data      all tensors, without gaps
///
/// The file is untrusted: all lengths, offsets and types are checked before anything is read from it.
public struct Safetensors: Sendable {
    /// One tensor, converted to `Float`.
    public struct Entry: Sendable {
        public let shape: [Int]
        public let elements: [Float]
    }

    private struct Place {
        let dtype: Dtype
        let shape: [Int]
        let bytes: Range<Int>
    }

    private enum Dtype: String {
        case float32 = "F32"
        case float16 = "F16"
        case bfloat16 = "BF16"

        var size: Int { self == .float32 ? 4 : 2 }
    }

    /// The maximum length of a header, as in other readers of this format.
    static let longestHeader = 100_000_000
    /// The maximum size of a file, checked before reading.
    static let largestFile = 1 << 30

    private let data: Data
    private let places: [String: Place]

    /// The names of all tensors, in order.
    public var names: [String] { places.keys.sorted() }

    /// Reads a plain file.
    public init(contentsOf file: URL) throws(ModelError) {
        let bytes: Data
        do {
            bytes = try Self.contents(of: file)
        } catch let error as ModelError {
            throw error
        } catch {
            throw ModelError(
                code: .fileNotFound, what: "the model's file cannot be read", got: file.path,
                expected: "a readable file of weights", fix: "Pass the path of an existing, readable file.")
        }
        try self.init(bytes)
    }

    private static func contents(of file: URL) throws -> Data {
        let place = file.resolvingSymlinksInPath()
        guard try FileManager.default.attributesOfItem(atPath: place.path)[.type] as? FileAttributeType == .typeRegular
        else { throw CocoaError(.fileReadUnknown) }
        let handle = try FileHandle(forReadingFrom: place)
        defer { try? handle.close() }
        // The limit also holds for a file that grows meanwhile.
        let bytes = try handle.read(upToCount: largestFile + 1) ?? Data()
        guard bytes.count <= largestFile else {
            throw ModelError(
                code: .unsupported, what: "the model's file is too large", got: "more than \(largestFile) bytes",
                expected: "at most \(largestFile)", fix: "Use a smaller model.")
        }
        return bytes
    }

    /// Reads the bytes of a file.
    public init(_ data: Data) throws(ModelError) {
        let bytes = Data(data)  // indices from 0
        guard bytes.count >= 8 else { throw Self.malformed("the file ends before its header", "\(bytes.count) bytes") }
        let length = bytes.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard length <= UInt64(Self.longestHeader), length <= UInt64(bytes.count - 8) else {
            throw Self.malformed("the header is longer than the file, or than allowed", "\(length) bytes")
        }
        let start = 8 + Int(length)
        let text = bytes[8..<start]
        let header: Header
        do {
            header = try JSONDecoder().decode(Header.self, from: text)
        } catch {
            throw Self.malformed("the header is not a table of tensors", "\(error)")
        }
        // The decoder accepts duplicate names and other text encodings, which this format forbids.
        guard text.first == UInt8(ascii: "{"), !text.contains(0), memberCount(ofObject: text) == header.memberCount
        else {
            throw Self.malformed("the header is not a table of tensors", "a name twice, or another encoding")
        }
        var places: [String: Place] = [:]
        for (name, entry) in header.entries {
            places[name] = try Self.place(of: entry, name, dataStart: start, dataLength: bytes.count - start)
        }
        try Self.checkTiling(places, dataStart: start, end: bytes.count)
        self.data = bytes
        self.places = places
    }

    /// The tensor with this name, if it has this shape and only finite numbers.
    public func tensor(_ name: String, shape: [Int]) throws(ModelError) -> Entry {
        guard let place = places[name], place.shape == shape else {
            throw ModelError(
                code: .wrongTensor, what: "tensor \(shown(name)) does not match the model",
                got: places[name].map { "\($0.shape)" } ?? "no such tensor", expected: "\(shape)",
                fix: "Use the weights that belong to this model.")
        }
        let elements = data[place.bytes].withUnsafeBytes { bytes in
            (0..<bytes.count / place.dtype.size).map { index in
                let at = index * place.dtype.size
                switch place.dtype {
                case .float32:
                    return Float(
                        bitPattern: UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt32.self)))
                case .float16:
                    return float(
                        float16Bits: UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt16.self)))
                case .bfloat16:
                    let bits = UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt16.self))
                    return Float(bitPattern: UInt32(bits) << 16)
                }
            }
        }
        if let at = elements.firstIndex(where: { !$0.isFinite }) {
            throw ModelError(
                code: .notFinite, what: "a weight of tensor \(shown(name)) is NaN or infinite",
                got: "\(elements[at]) at \(at)",
                expected: "finite weights", fix: "Use a file that is not damaged.")
        }
        return Entry(shape: shape, elements: elements)
    }

    private static func place(
        of entry: Header.Entry, _ name: String, dataStart: Int, dataLength: Int
    ) throws(ModelError) -> Place {
        guard let dtype = Dtype(rawValue: entry.dtype) else {
            throw ModelError(
                code: .unsupported, what: "tensor \(shown(name)) has an unsupported type",
                got: shown(entry.dtype),
                expected: "F32, F16 or BF16", fix: "Convert the weights.")
        }
        guard entry.offsets.count == 2, entry.offsets[0] <= entry.offsets[1],
            let begin = Int(exactly: entry.offsets[0]), let end = Int(exactly: entry.offsets[1]), end <= dataLength
        else { throw malformed("tensor \(shown(name)) is outside the file", "offsets \(entry.offsets)") }
        var size = dtype.size
        var shape: [Int] = []
        for extent in entry.shape {
            guard let extent = Int(exactly: extent), !size.multipliedReportingOverflow(by: extent).overflow else {
                throw malformed("the shape of tensor \(shown(name)) is too large", "\(entry.shape)")
            }
            size *= extent
            shape.append(extent)
        }
        guard size == end - begin else {
            throw malformed(
                "tensor \(shown(name)) has the wrong number of bytes for its shape", "\(end - begin), not \(size)")
        }
        return Place(dtype: dtype, shape: shape, bytes: dataStart + begin..<dataStart + end)
    }

    /// Tensors must be adjacent, without gaps or overlaps, so that every byte belongs to exactly one.
    private static func checkTiling(_ places: [String: Place], dataStart: Int, end: Int) throws(ModelError) {
        var reached = dataStart
        for place in places.values.sorted(by: {
            ($0.bytes.lowerBound, $0.bytes.upperBound) < ($1.bytes.lowerBound, $1.bytes.upperBound)
        }) {
            guard place.bytes.lowerBound == reached else {
                throw malformed(
                    "tensors overlap or leave gaps",
                    "a tensor at \(place.bytes.lowerBound - dataStart) after \(reached - dataStart)")
            }
            reached = place.bytes.upperBound
        }
        guard reached == end else { throw malformed("bytes follow the last tensor", "\(end - reached) of them") }
    }

    private static func malformed(_ what: String, _ got: String) -> ModelError {
        ModelError(
            code: .malformed, what: what, got: shown(got), expected: "a complete safetensors file",
            fix: "Download the file again.")
    }
}

/// The header's JSON.
private struct Header: Decodable {
    struct Entry: Decodable {
        let dtype: String
        let shape: [UInt64]
        let offsets: [UInt64]

        enum CodingKeys: String, CodingKey {
            case dtype, shape
            case offsets = "data_offsets"
        }
    }

    let entries: [String: Entry]
    /// Entries and the metadata.
    let memberCount: Int

    init(from decoder: any Decoder) throws {
        let table = try decoder.container(keyedBy: Name.self)
        var entries: [String: Entry] = [:]
        for name in table.allKeys where name.stringValue != "__metadata__" {
            entries[name.stringValue] = try table.decode(Entry.self, forKey: name)
        }
        self.entries = entries
        memberCount = table.allKeys.count
    }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}

/// The number of members of a valid JSON object, counting duplicate names.
private func memberCount(ofObject text: Data) -> Int {
    var count = 0
    var depth = 0
    var isString = false
    var isEscaped = false
    for byte in text {
        if isString {
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isString = false
            }
            continue
        }
        switch byte {
        case UInt8(ascii: "\""): isString = true
        case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
        case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
        case UInt8(ascii: ":") where depth == 1: count += 1
        default: break
        }
    }
    return count
}

/// Text from a file for a message: without control codes, and shortened.
private func shown(_ text: String) -> String { ByteText.text(text.utf8.prefix(200)) }

/// Swift has no `Float16` on Intel Macs.
private func float(float16Bits bits: UInt16) -> Float {
    let sign = UInt32(bits & 0x8000) << 16
    let magnitude = UInt32(bits & 0x7FFF)
    if magnitude >= 0x7C00 { return Float(bitPattern: sign | 0x7F80_0000 | (magnitude & 0x3FF) << 13) }
    // The product is exact, subnormals included: 2^112 moves the exponent's bias from 15 to 127.
    let value = Float(bitPattern: magnitude << 13) * 0x1p112
    return sign == 0 ? value : -value
}
