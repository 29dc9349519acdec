import XCTest

@testable import decode_demo

#if canImport(FoundationXML)
    import FoundationXML
#endif

/// The page of a report, from valid and invalid data.
final class ReportTests: XCTestCase {
    func testEscaping() {
        XCTAssertEqual(escaped("a&b<c>d\"e'f"), "a&amp;b&lt;c&gt;d&quot;e&#39;f")
        XCTAssertEqual(escaped("\u{0}\u{1B}[2J\u{7F}\r\n\t"), "␀␛[2J␡␍\n\t")
        XCTAssertEqual(escaped("\u{85}\u{202E}\u{FEFF}\u{FFFE}\u{2028}"), String(repeating: "\u{FFFD}", count: 5))
        XCTAssertEqual(escaped("👩‍💻 é"), "👩‍💻 é")
        XCTAssertEqual(
            ["\n", "\t", " ", "", "<", "\u{7}", "ab"].map(label(ofToken:)), ["⏎", "⇥", "·", "∅", "<", "␇", "a"])
    }

    func testNumbers() {
        XCTAssertEqual(
            [0, 0.0064, -0.0001, 32, 3e-9, 1_234_567_890, .nan, -.infinity].map(shortText),
            ["0", "0.0064", "−0.00010", "32", "3.0e−9", "1.2e9", "–", "–"])
        XCTAssertEqual([0.041, -0.041, 0, .nan].map(signedText), ["+0.041", "−0.041", "0", "–"])
        XCTAssertEqual(decimalText(-0.00001, digits: 2), "0.00")
        XCTAssertEqual(
            [4096, -1_234_567, 12, Int.min].map(groupedText),
            ["4,096", "−1,234,567", "12", "−9,223,372,036,854,775,808"])
        XCTAssertEqual([1024, 131_072, 1000].map(contextText), ["1 K", "128 K", "1000"])
        XCTAssertEqual(ReadableUnit.time(upTo: 0.002).text(0.00184), "1.84 ms")
        XCTAssertEqual(ReadableUnit.time(upTo: 0.0002).text(0.000184), "184 µs")
        XCTAssertEqual(ReadableUnit.memory(upTo: 2_000_000).text(511_500), "0.51 MB")
        XCTAssertEqual([1.5, -0.001, .nan, 1e300, 2.125].map { coordinate($0) }, ["1.5", "0", "0", "1000000", "2.12"])
    }

    func testBound() throws {
        let bound = RateBound(Sample.rows)
        XCTAssertEqual(bound.base?.name, "f16")
        XCTAssertEqual(bound.elementsPerToken, 2048)
        XCTAssertEqual(try XCTUnwrap(bound.leastError(bytesPerToken: 1024)), 1.0 / 256, accuracy: 1e-12)
        // Costs in exact proportion to errors give the exact slope.
        var rows = Sample.rows
        for index in rows.indices { rows[index].bitsPerByte = 2 + 1.5 * rows[index].error }
        XCTAssertEqual(try XCTUnwrap(RateBound(rows).slope), 1.5, accuracy: 1e-9)
        XCTAssertNil(RateBound([]).slope)
        XCTAssertNil(RateBound([Sample.rows[0]]).slope)
    }

    func testPage() throws {
        let page = reportPage(Sample.data)
        try assertWellFormed(page, pictures: 5)
        for row in Sample.rows {
            for text in [row.name, groupedText(row.bytesPerToken), decimalText(row.bitsPerByte, digits: 4)] {
                XCTAssertTrue(page.contains(">\(text)</"), text)
            }
            // In the table, in two cost plots, and beside two bars.
            XCTAssertEqual(page.components(separatedBy: ">\(row.name)</").count - 1, 5, row.name)
            for text in [shortText(row.error), decimalText(row.bitsPerElement, digits: 3)] {
                XCTAssertTrue(page.contains("<td>\(text)</td>"), text)
            }
            for size in row.cacheSizes {
                let number = ReadableUnit.memory(upTo: 1_000_000).number(Double(size.bytes))
                XCTAssertTrue(page.contains("<td>\(number)</td>"), number)
            }
        }
        for text in ["+0.041", "−0.00010", "3.9× smaller", "128 K, MB", "3.32 ms", "matrix products"] {
            XCTAssertTrue(page.contains(text), text)
        }
        XCTAssertTrue(page.contains("<span class=\"prompt\">The ring </span>holds R&amp;D &lt;rows&gt;\n</pre>"))
    }

    /// A storage is not shown as lossless if its standard error could hide a loss of 0.5 %.
    func testHeadlineRespectsTheStandardError() {
        var data = Sample.data
        XCTAssertTrue(reportPage(data).contains("4-bit, the smallest within 0.5 %"))
        for index in data.rows.indices where data.rows[index].name == "4-bit" { data.rows[index].standardError = 0.1 }
        XCTAssertFalse(reportPage(data).contains("4-bit, the smallest within 0.5 %"))
    }

    /// A report must not fetch or run anything.
    func testSelfContained() {
        let page = reportPage(Sample.data).replacingOccurrences(of: "<meta http-equiv=", with: "")
        for text in ["http", "//", "<script", "src=", "href", "url(", "@import", "<link", "<img", "javascript", " on"] {
            // " on" would begin an event attribute; in running text it is a word.
            let found = text == " on" ? page.contains(/<[^>]* on[a-z]+=/) : page.contains(text)
            XCTAssertFalse(found, text)
        }
    }

    func testHostileTexts() throws {
        let hostile =
            "</title></pre></svg><script>alert(\"1\")</script>' onload='x' & \u{0}\u{1B}[31m\u{202E} ]]> <!-- 👩‍💻\n"
        var data = Sample.data
        (data.title, data.device, data.model, data.passage) = (hostile, hostile, hostile, hostile)
        (data.system, data.prompt, data.continuation, data.writing) = (hostile, hostile, hostile, hostile)
        for index in data.rows.indices {
            data.rows[index].name = hostile
            for part in data.rows[index].parts.indices { data.rows[index].parts[part].name = hostile }
        }
        data.attention?.storage = hostile
        data.attention?.tokens = hostile.map { String($0) }
        let page = reportPage(data)
        let texts = try assertWellFormed(page, pictures: 5)
        XCTAssertFalse(page.contains("<script"))
        XCTAssertFalse(page.contains("<!--"))
        XCTAssertFalse(page.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" })
        // The reader sees the text itself, with symbols for invisible characters.
        let seen = hostile.replacingOccurrences(of: "\u{0}", with: "␀").replacingOccurrences(of: "\u{1B}", with: "␛")
            .replacingOccurrences(of: "\u{202E}", with: "\u{FFFD}")
        XCTAssertEqual(texts["pre"], [seen + seen])
        XCTAssertEqual(texts["h1"], [seen])
    }

    func testBadNumbers() throws {
        let bad = [Double.nan, .infinity, -.infinity, -1, 0, 1e308, .leastNonzeroMagnitude]
        let whole = [Int.min, -1, 0, 1, Int.max]
        for (index, number) in bad.enumerated() {
            for count in whole {
                var data = Sample.data
                for row in data.rows.indices where row.isMultiple(of: 2) || index.isMultiple(of: 2) {
                    data.rows[row].bytesPerToken = count
                    data.rows[row].bitsPerElement = number
                    data.rows[row].bitsPerByte = row == 2 ? number : -number
                    data.rows[row].error = number
                    data.rows[row].dispatchesPerToken = number
                    data.rows[row].cacheSizes = [.init(context: count, bytes: count)]
                    data.rows[row].parts = data.rows[row].parts.map {
                        .init(name: $0.name, secondsPerToken: number, isKernel: $0.isKernel)
                    }
                }
                data.attention?.firstPosition = count
                data.attention?.weights = [[], [number], [number, 1, number, 1]]
                data.ring?.capacity = count
                data.ring?.samples = [
                    .init(newest: index.isMultiple(of: 2) ? -8 : Int.min, slots: []),
                    .init(newest: count, slots: [count, nil, 3]),
                    .init(newest: Int.max, slots: Array(repeating: -count.signum(), count: 9)),
                ]
                try assertWellFormed(reportPage(data), pictures: 5)
            }
        }
    }

    func testNothing() throws {
        var data = ReportData(
            title: "", device: "", model: "", passage: "", system: "", prompt: "", continuation: "", writing: "",
            rows: [])
        XCTAssertTrue(reportPage(data).contains("nothing measured"))
        try assertWellFormed(reportPage(data), pictures: 3)
        data.attention = .init(layer: 0, head: 0, storage: "", firstPosition: 0, tokens: ["a"], weights: [])
        data.ring = .init(layer: 0, window: 0, capacity: 0, samples: [.init(newest: 0, slots: [])])
        data.rows = [Sample.rows[3]]
        data.rows[0].parts = []
        try assertWellFormed(reportPage(data), pictures: 5)
    }

    func testSize() throws {
        let page = reportPage(Sample.data(tokens: 96, samples: 128))
        XCTAssertLessThan(page.utf8.count, 300_000)
        // Slots in random order leave nothing to merge.
        var shuffled = Sample.data(tokens: 96, samples: 128)
        for sample in 0..<128 {
            let newest = shuffled.ring?.samples[sample].newest ?? 0
            shuffled.ring?.samples[sample].slots = (0..<256).map { newest - $0 * 151 % 256 }
        }
        XCTAssertLessThan(reportPage(shuffled).utf8.count, 600_000)
        // Excess data is thinned out.
        let thinned = reportPage(Sample.data(tokens: 600, samples: 4000))
        XCTAssertLessThan(thinned.utf8.count, 600_000)
        try assertWellFormed(thinned, pictures: 5)
    }

    /// Parses a page as XML, after closing the few elements that HTML leaves open. Returns texts by element name.
    @discardableResult
    private func assertWellFormed(
        _ page: String, pictures: Int, line: UInt = #line
    ) throws -> [String: [String]] {
        let closed = page.replacing(/<meta ([^>]*)>/) { "<meta \($0.output.1)/>" }
        let reader = PageReader()
        let parser = XMLParser(data: Data(closed.utf8))
        parser.delegate = reader
        // On Linux, the parser accepts some malformed texts but still reports an error.
        let isParsed = parser.parse() && parser.parserError == nil && reader.isClosed
        XCTAssertTrue(isParsed, "not well-formed at line \(parser.lineNumber)", line: line)
        XCTAssertEqual(reader.texts["svg"]?.count, pictures, line: line)
        XCTAssertEqual(reader.texts["desc"]?.count, pictures, "a picture lacks its words", line: line)
        XCTAssertEqual(Set(reader.ids).count, reader.ids.count, "an id is used twice", line: line)
        for number in reader.numbers {
            XCTAssertNotNil(number.wholeMatch(of: /-?[0-9]+(\.[0-9]+)?/), "\(number) is not a number", line: line)
        }
        return reader.texts
    }
}

/// Collects the parts of a page that tests check.
private final class PageReader: NSObject, XMLParserDelegate {
    var texts: [String: [String]] = [:]
    var ids: [String] = []
    var numbers: Set<String> = []
    private var open: [String] = []
    var isClosed: Bool { open.isEmpty && texts["html"]?.count == 1 }

    func parser(
        _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        open.append(name)
        texts[name, default: []].append("")
        if let id = attributes["id"] { ids.append(id) }
        for key in ["x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "font-size"] {
            if let number = attributes[key] { numbers.insert(number) }
        }
        for key in ["points", "viewBox", "d", "transform"] {
            let parts = attributes[key]?.split { !($0.isLetter || $0.isNumber || "-.".contains($0)) } ?? []
            let words = parts.flatMap { $0.split { "Mhv".contains($0) } }.map(String.init)
            numbers.formUnion(words.filter { !["translate", "scale", "rotate"].contains($0) })
        }
    }

    func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
        if open.last == name { open.removeLast() }
    }

    func parser(_ parser: XMLParser, foundCharacters text: String) {
        for name in Set(open) {
            let last = texts[name]?.popLast() ?? ""
            texts[name]?.append(last + text)
        }
    }
}

/// Data of a typical run.
private enum Sample {
    static let rows = [
        row("f16", 4096, 2.1486, 0), row("8-bit", 2080, 2.1485, 3e-5), row("6-bit", 1568, 2.1489, 5e-4),
        row("5-bit", 1312, 2.150, 2e-3), row("4-bit", 1056, 2.155, 8e-3), row("3-bit", 800, 2.19, 0.032),
    ]
    static let data = data(tokens: 16, samples: 40)

    static func row(_ name: String, _ bytes: Int, _ bitsPerByte: Double, _ error: Double) -> ReportRow {
        ReportRow(
            name: name, bytesPerToken: bytes, bitsPerElement: Double(bytes) / 256, bitsPerByte: bitsPerByte,
            standardError: 0.0012, error: error,
            cacheSizes: [1024, 32768, 131_072].map { .init(context: $0, bytes: bytes / 2 * ($0 + 256)) },
            dispatchesPerToken: 20,
            parts: [
                .init(name: "matrix products", secondsPerToken: 2.41e-3, isKernel: false),
                .init(name: "rotate", secondsPerToken: 0.13e-3, isKernel: true),
                .init(name: "store", secondsPerToken: 0.16e-3, isKernel: true),
                .init(name: "attend", secondsPerToken: 0.62e-3, isKernel: true),
            ])
    }

    static func data(tokens: Int, samples: Int) -> ReportData {
        let text = "the ring <holds>\n"
        let letters = (0..<tokens).map { String(text[text.index(text.startIndex, offsetBy: $0 % text.count)]) }
        let weights = (0..<tokens).map { row -> [Double] in
            let parts: [Int] = (0...row).map { column in (column * 7 + row * 13) % 29 }
            return parts.map { Double($0) / 29 }
        }
        let ring = (0..<samples).map { index in
            let newest = 8 * index + 7
            let slots = (0..<256).map { slot -> Int? in
                let age = (newest - slot) & 255
                return age <= newest ? newest - age : nil
            }
            return ReportRing.Sample(newest: newest, slots: slots)
        }
        return ReportData(
            title: "A report", device: "Host", model: "jargon-lm, 4.66 M parameters", passage: "1,024 bytes",
            system: "a system", prompt: "The ring ", continuation: "holds R&D <rows>\n", writing: "greedy", rows: rows,
            attention: .init(
                layer: 1, head: 2, storage: "4-bit", firstPosition: 0, tokens: letters, weights: weights),
            ring: .init(layer: 0, window: 256, capacity: 256, samples: ring))
    }
}
