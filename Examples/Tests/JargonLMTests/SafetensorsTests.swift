import Foundation
import XCTest

@testable import JargonLM

/// Damaged and forged weight files are refused, each for its own reason, and never read past their end.
final class SafetensorsTests: XCTestCase {
    private func file(_ header: String, data: [UInt8] = [], length: UInt64? = nil) -> Data {
        let text = Array(header.utf8)
        let length = length ?? UInt64(text.count)
        return Data((0..<8).map { UInt8(truncatingIfNeeded: length >> (8 * $0)) } + text + data)
    }

    private func tensor(_ dtype: String = "F16", _ shape: String = "[2]", _ begin: String = "0", _ end: String = "4")
        -> String
    {
        #"{"dtype":"\#(dtype)","shape":\#(shape),"data_offsets":[\#(begin),\#(end)]}"#
    }

    private func assertRefused(
        _ data: Data, _ code: ModelError.Code, _ part: String, file: StaticString = #filePath, line: UInt = #line
    ) {
        XCTAssertThrowsError(try Safetensors(data), file: file, line: line) { error in
            guard let error = error as? ModelError else { return XCTFail("\(error)", file: file, line: line) }
            XCTAssertEqual(error.code, code, "\(error)", file: file, line: line)
            XCTAssert(error.what.contains(part), "\(error)", file: file, line: line)
            for text in [error.got, error.expected, error.fix] { XCTAssertNotEqual(text, "", file: file, line: line) }
        }
    }

    func testReadsFloatsOfEveryType() throws {
        // 1, -2, the smallest subnormal and the largest number of f16; 1.5 as bf16; 0.1 as f32.
        let data: [UInt8] = [0x00, 0x3C, 0x00, 0xC0, 0x01, 0x00, 0xFF, 0x7B, 0xC0, 0x3F, 0xCD, 0xCC, 0xCC, 0x3D]
        let header =
            #"{"__metadata__":{"a":"b"},"h":\#(tensor("F16", "[2,2]", "0", "8")),"#
            + #""b":\#(tensor("BF16", "[1]", "8", "10")),"f":\#(tensor("F32", "[]", "10", "14"))}"#
        let weights = try Safetensors(file(header, data: data))
        XCTAssertEqual(weights.names, ["b", "f", "h"])
        XCTAssertEqual(try weights.tensor("h", shape: [2, 2]).elements, [1, -2, 0x1p-24, 65504])
        XCTAssertEqual(try weights.tensor("b", shape: [1]).elements, [1.5])
        XCTAssertEqual(try weights.tensor("f", shape: []).elements, [0.1])
    }

    func testRefusesBrokenLengths() {
        for (data, part) in [
            (Data(), "ends before its header"), (Data([1, 2, 3]), "ends before its header"),
            (file("{}", length: 3), "longer than the file"), (file("{}", length: .max), "longer than the file"),
            (file("{}", length: UInt64(Int.max)), "longer than the file"), (file("{}", length: 1), "not a table"),
            (file("not json"), "not a table"), (file(#"{"a":[]}"#), "not a table"),
            (file(String(repeating: "[", count: 100_000)), "not a table"), (file("{}", data: [0]), "bytes follow"),
        ] { assertRefused(data, .malformed, part) }
    }

    func testRefusesBrokenTensors() {
        let huge = "[4294967296,4294967296,4294967296]"
        for (tensors, code, part) in [
            ([tensor("I8", "[4]")], .unsupported, "type"),
            ([tensor("F16", "[3]")], .malformed, "wrong number of bytes"),
            ([tensor("F16", "[2]", "0", "6")], .malformed, "outside"),
            ([tensor("F16", "[2]", "4", "0")], .malformed, "outside"),
            ([tensor("F16", "[2]", "-4", "0")], .malformed, "not a table"),
            ([tensor("F16", "[2.5]")], .malformed, "not a table"),
            ([tensor("F16", "[2]", "0", "18446744073709551615")], .malformed, "outside"),
            ([tensor("F16", huge)], .malformed, "too large"),
            ([tensor("F16", "[18446744073709551615]")], .malformed, "too large"),
            ([tensor(), tensor()], .malformed, "overlap"),
            ([tensor(), tensor("F16", "[1]", "2", "4")], .malformed, "overlap"),
            ([tensor("F16", "[1]", "2", "4")], .malformed, "gaps"),
        ] as [([String], ModelError.Code, String)] {
            let header = zip(["a", "b"], tensors).map { "\"\($0)\":\($1)" }.joined(separator: ",")
            assertRefused(file("{\(header)}", data: [0, 0, 0, 0]), code, part)
        }
        assertRefused(file(#"{"a":{"dtype":"F16","shape":[0],"data_offsets":[0]}}"#), .malformed, "outside")
    }

    func testRefusesDuplicateNamesAndOtherEncodings() throws {
        let four: [UInt8] = [0, 0, 0, 0]
        assertRefused(file(#"{"a":\#(tensor()),"a":\#(tensor("I8", "[9]"))}"#, data: four), .malformed, "not a table")
        assertRefused(file(#" {"a":\#(tensor())}"#, data: four), .malformed, "not a table")
        XCTAssertNoThrow(try Safetensors(file(#"{"a:\"{\\":\#(tensor()) }"#, data: four)), "signs within a name")
        let wide = Data(#"{"a":\#(tensor())}"#.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] })
        let size = withUnsafeBytes(of: UInt64(wide.count).littleEndian) { Data($0) }
        assertRefused(size + wide + Data(four), .malformed, "not a table")
    }

    func testMessagesAreShortAndPlain() {
        let name = String(repeating: "x", count: 5000) + "\\u001b[2J"
        XCTAssertThrowsError(try Safetensors(file(#"{"\#(name)":\#(tensor("\\u001b[2J"))}"#))) { error in
            let text = "\(error)"
            XCTAssertLessThan(text.count, 1000)
            XCTAssertFalse(text.unicodeScalars.contains { $0.value < 32 }, text)
        }
    }

    func testReadsOnlyPlainFiles() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("weights-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let weights = folder.appendingPathComponent("weights")
        let link = folder.appendingPathComponent("link")
        try file("{}").write(to: weights)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: weights)
        XCTAssertNoThrow(try Safetensors(contentsOf: link))
        for place in [folder, URL(fileURLWithPath: "/dev/zero"), URL(fileURLWithPath: "/nowhere")] {
            assertThrows(.fileNotFound, try Safetensors(contentsOf: place))
        }
    }

    func testRefusesTensorsOfOtherModels() throws {
        let weights = try Safetensors(file(#"{"a":\#(tensor())}"#, data: [0, 0x3C, 0, 0x7E]))
        assertThrows(.wrongTensor, try weights.tensor("b", shape: [2]))
        assertThrows(.wrongTensor, try weights.tensor("a", shape: [2, 1]))
        assertThrows(.notFinite, try weights.tensor("a", shape: [2]))
        assertThrows(.wrongTensor, try LanguageModel(weights))
    }

    /// Every prefix of the start of a real header, and every bit flip in it, gives an error or weights.
    func testDamageNeverCrashes() throws {
        let whole = file(
            #"{"a":\#(tensor()),"b":\#(tensor("F32", "[1,1]", "4", "8"))}"#, data: [0, 0x3C, 0, 0x40, 0, 0, 0, 0])
        for length in 0..<whole.count { XCTAssertThrowsError(try Safetensors(whole.prefix(length))) }
        for index in whole.indices {
            for bit in 0..<8 {
                var damaged = whole
                damaged[index] ^= 1 << bit
                if let weights = try? Safetensors(damaged) {
                    for name in weights.names { _ = try? weights.tensor(name, shape: [2]) }
                }
            }
        }
    }
}
