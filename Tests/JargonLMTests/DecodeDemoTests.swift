import Foundation
import JargonLM
import XCTest

@testable import decode_demo

/// The demo as a process, as a person would run it.
final class DecodeDemoTests: XCTestCase {
    private struct Run {
        let status: Int32
        let output: String
        let complaint: String
    }

    private func process(_ arguments: [String]) throws -> Process {
        let folder = Bundle(for: Self.self).bundleURL.deletingLastPathComponent()
        let candidates = [folder, Bundle.main.bundleURL].map { $0.appendingPathComponent("decode-demo") }
        let process = Process()
        process.executableURL = try XCTUnwrap(
            candidates.first { FileManager.default.isExecutableFile(atPath: $0.path) },
            "decode-demo is not beside the tests: \(candidates)")
        process.arguments = arguments
        return process
    }

    private func run(_ arguments: String...) throws -> Run {
        let process = try process(arguments)
        let output = Pipe()
        let complaint = Pipe()
        process.standardOutput = output
        process.standardError = complaint
        try process.run()
        // A run's output fits a pipe's buffer, so that reading one after the other cannot block.
        let texts = [output, complaint].map { pipe in
            String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        }
        process.waitUntilExit()
        return Run(status: process.terminationStatus, output: texts[0], complaint: texts[1])
    }

    private func assertContains(
        _ text: String, _ parts: [String], file: StaticString = #filePath, line: UInt = #line
    ) {
        for part in parts where !text.contains(part) {
            XCTFail("\"\(part)\" is missing in:\n\(text)", file: file, line: line)
        }
    }

    func testWritesTextWithoutControlCodes() throws {
        let run = try run("--tokens", "40", "--no-table", "--temperature", "0", "--prompt", "\\nkernel\\n")
        XCTAssertEqual(run.status, 0, run.complaint)
        XCTAssertEqual(run.complaint, "")
        assertContains(
            run.output,
            ["jargon-lm: 4 layers", "storage  4-bit", "\nkernel\n", "position 48 of 1024", "tokens/s"])
        XCTAssertFalse(run.output.unicodeScalars.contains { $0.value < 32 && $0 != "\n" }, run.output)
    }

    func testComparesAndReports() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("report-\(UUID()).html")
        defer { try? FileManager.default.removeItem(at: file) }
        let run = try run("--tokens", "8", "--passage", "20", "--table", "f16,4,k5v4", "--report", file.path)
        XCTAssertEqual(run.status, 0, run.complaint)
        XCTAssertEqual(run.complaint, "", "no bar without a terminal")
        assertContains(
            run.output, ["A held-out passage of 20 bytes", "f16        4096", "4-bit      1056", "k5v4       1184"])
        let table = run.output.components(separatedBy: "report:")[0]
        XCTAssert(table.split(separator: "\n").allSatisfy { $0.count <= 106 }, table)
        let page = try String(contentsOf: file, encoding: .utf8)
        assertContains(page, ["<!DOCTYPE html>", "k5v4", "Where one head looks", "</html>"])
    }

    func testStorageAndSeedAreTaken() throws {
        func text(_ arguments: String...) throws -> String {
            let run = try self.run("--tokens", "30", "--no-table", "--seed", arguments[0], "--storage", arguments[1])
            XCTAssertEqual(run.status, 0, run.complaint)
            assertContains(run.output, ["storage  \(arguments[1])"])
            return run.output.components(separatedBy: "tokens/s")[0].components(separatedBy: "\n").dropFirst(3)
                .dropLast().joined(separator: "\n")
        }
        XCTAssertEqual(try text("3", "f16"), try text("3", "f16"))
        XCTAssertNotEqual(try text("3", "f16"), try text("4", "f16"))
        _ = try text("3", "2-bit")
    }

    func testListsDevicesAndHelps() throws {
        let list = try run("--list-devices")
        XCTAssertEqual(list.status, 0)
        assertContains(list.output, ["0  host"])
        let help = try run("--help")
        XCTAssertEqual(help.status, 0)
        for option in [
            "--prompt", "--tokens", "--storage", "--device", "--seed", "--temperature", "--report", "--list-devices",
        ] { assertContains(help.output, [option]) }
        XCTAssert(help.output.split(separator: "\n").allSatisfy { $0.count <= 120 })
    }

    func testBadArgumentsEndWithTwo() throws {
        for (arguments, part) in [
            (["--tokens"], "--tokens needs a value"), (["--tokens", "x"], "not x"),
            (["--tokens", "-1"], "from 0 to 1024"),
            (["--storage", "9"], "--storage takes one of"), (["--passage", "0"], "from 1 to 1024"),
            (["--temperature", "nan"], "--temperature takes"),
            (["--device", "abacus"], "--list-devices, not abacus"), (["--what"], "--what is not an option"),
            (["--table", "f16,x"], "--table takes one of"), (["--report", "r", "--no-table"], "needs storages"),
            (["--prompt", String(repeating: "x", count: 1025), "--no-table"], "1 bytes too long"),
        ] {
            let process = try process(arguments)
            let complaint = Pipe()
            process.standardError = complaint
            process.standardOutput = Pipe()
            try process.run()
            let text = String(decoding: complaint.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            process.waitUntilExit()
            XCTAssertEqual(process.terminationStatus, 2, "\(arguments)")
            assertContains(text, [part, "Try decode-demo --help"])
        }
    }

    func testAReportThatCannotBeWrittenEndsWithOne() throws {
        for file in ["/nowhere/report.html", "/"] {
            let run = try run("--tokens", "1", "--report", file)
            XCTAssertEqual(run.status, 1)
            XCTAssert(run.complaint.hasPrefix("decode-demo: the report cannot be written (got \(file)"), run.complaint)
        }
    }

    func testCtrlCEndsWithAWholeLine() throws {
        let process = try process(["--tokens", "1000", "--no-table"])
        let output = Pipe()
        let complaint = Pipe()
        process.standardOutput = output
        process.standardError = complaint
        try process.run()
        // The first bytes come when the signal is already listened for.
        var text = output.fileHandleForReading.availableData
        process.interrupt()
        text += output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        XCTAssertEqual(process.terminationStatus, 130)
        XCTAssertEqual(text.last, UInt8(ascii: "\n"))
        assertContains(
            String(decoding: complaint.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self),
            ["decode-demo: interrupted"])
    }

    func testTexts() {
        XCTAssertEqual(
            [0, 999, 1000, 9994, 9996, 99_960, 999_400, 999_600, 269_000_000].map(bytesText),
            ["0 B", "999 B", "1.00 KB", "9.99 KB", "10.0 KB", "100 KB", "999 KB", "1.00 MB", "269 MB"])
        XCTAssertEqual(
            [0.00004, -0.00004, 0.00006, -1].map { signed($0, 4) }, ["0.0000", "0.0000", "+0.0001", "-1.0000"])
        XCTAssertEqual(["a\\nb", "\\\\n", "\\x", "end\\"].map(unescaped), ["a\nb", "\\n", "\\x", "end\\"])
    }
}
