import Foundation
import JargonLM
import MLXNativeKernels
import XCTest

@testable import decode_demo

/// Runs the demo as a process, like a user.
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
        // These tests ignore messages about missing GPU features and slow compilations.
        process.environment = ProcessInfo.processInfo.environment.merging(
            ["MNK_DEVICE": try bestDevice().kind.rawValue, "MNK_METAL_MESSAGES": "0"]) { $1 }
        return process
    }

    private func run(_ arguments: String...) throws -> Run { try run(process(arguments)) }

    /// Runs a process to its end. Its output may go elsewhere. Ctrl-C is pressed once the output contains `part`.
    private func run(_ process: Process, to other: Any? = nil, interruptedAfter part: String? = nil) throws -> Run {
        let (output, complaint) = (Pipe(), Pipe())
        process.standardOutput = other ?? output
        process.standardError = complaint
        try process.run()
        var text = Data()
        if let part {
            while text.range(of: Data(part.utf8)) == nil {
                let more = output.fileHandleForReading.availableData
                if more.isEmpty { break }
                text += more
            }
            process.interrupt()
        }
        // The output of a run fits in a pipe's buffer, so reading one pipe after the other cannot block.
        if other == nil { text += output.fileHandleForReading.readDataToEndOfFile() }
        let said = complaint.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        XCTAssertEqual(process.terminationReason, .exit)
        return Run(
            status: process.terminationStatus, output: String(decoding: text, as: UTF8.self),
            complaint: String(decoding: said, as: UTF8.self))
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
        let run = try run("--tokens", "8", "--passage", "20", "--table", "4,f16,k5v4", "--report", file.path)
        XCTAssertEqual(run.status, 0, run.complaint)
        XCTAssertEqual(run.complaint, "", "no bar without a terminal")
        assertContains(
            run.output,
            [
                "A held-out passage of 20 bytes, predicted byte by byte", "store also rotates queries and keys",
                "±: the standard error of the difference over the passage's bytes.",
            ])
        let table = run.output.components(separatedBy: "report:")[0]
        XCTAssert(table.split(separator: "\n").allSatisfy { $0.count <= 100 }, table)
        XCTAssertEqual(
            table.contains("not on a GPU.") && table.contains(": CPU, not a GPU\n"),
            try bestDevice().kind == .host, table)
        let rows = table.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        let head = try XCTUnwrap(rows.firstIndex { $0.first == "storage" && $0.contains("over") }, table)
        XCTAssertEqual(rows[head].suffix(7), ["bits", "over", "±", "dispatches", "Swift", "store", "attend"])
        XCTAssertEqual(rows[head + 1].suffix(3), ["/byte", "f16", "/token"], "the base has the most bits")
        // Largest first. A row ends with the dispatches and three shares of two words each.
        let measured = rows[(head + 2)..<(head + 5)].map { ($0, Array($0.dropLast(7).suffix(2))) }
        XCTAssertEqual(measured.map { $0.0.prefix(2) }, [["f16", "4096"], ["k5v4", "1184"], ["4-bit", "1056"]])
        XCTAssertEqual(measured[0].1, ["0.0000", "0.0000"])
        for (row, difference) in measured.dropFirst() {
            XCTAssert("+−".contains(difference[0].prefix(1)), "\(row)")
            XCTAssertGreaterThan(try XCTUnwrap(Double(difference[1])), 0, "\(row)")
        }
        let page = try String(contentsOf: file, encoding: .utf8)
        assertContains(page, ["<!DOCTYPE html>", "k5v4", "Attention of one head", "</html>"])
        let places = ["f16", "k5v4", "4-bit"].map { page.range(of: "<th scope=\"row\">\($0)</th>")?.lowerBound }
        XCTAssertEqual(places.compactMap { $0 }, places.compactMap { $0 }.sorted())
        XCTAssertFalse(places.contains(nil))
    }

    func testUsesStorageAndSeed() throws {
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

    func testListsDevicesAndPrintsHelp() throws {
        let list = try run("--list-devices")
        XCTAssertEqual(list.status, 0)
        assertContains(list.output, ["0  host"])
        let help = try run("--help")
        XCTAssertEqual(help.status, 0)
        for option in [
            "--prompt", "--tokens", "--storage", "--device", "--seed", "--temperature", "--report", "--list-devices",
        ] { assertContains(help.output, [option]) }
        XCTAssert(help.output.split(separator: "\n").allSatisfy { $0.count <= 100 })
    }

    func testBadArgumentsExitWithTwo() throws {
        for (arguments, part) in [
            (["--tokens"], "--tokens needs a value"), (["--tokens", "x"], "not x"),
            (["--tokens", "-1"], "from 0 to 1024"),
            (["--storage", "9"], "--storage takes one of"), (["--passage", "0"], "from 1 to 1024"),
            (["--temperature", "nan"], "--temperature takes"),
            (["--device", "abacus"], "--list-devices, not abacus"), (["--what"], "unknown option --what"),
            (["--table", "f16,x"], "--table takes one of"), (["--report", "r", "--no-table"], "needs storages"),
            (["--table", ""], "--table takes storages"), (["--table", ","], "--table takes storages"),
            (["--table", "f16,,4"], "--table takes storages"),
            (["--table", "4,f16,4-bit"], "--table lists 4-bit twice"),
            (["--prompt", String(repeating: "x", count: 1024), "--no-table"], "--prompt: "),
        ] {
            let run = try run(process(arguments))
            XCTAssertEqual(run.status, 2, "\(arguments)")
            XCTAssertEqual(run.output, "", "nothing is printed before arguments are known to be good")
            assertContains(run.complaint, [part, "Try decode-demo --help"])
        }
    }

    /// `ReportFileTests` has the names that are refused.
    func testUnwritableReportExitsWithOne() throws {
        let file = "/nowhere/report.html"
        let run = try run("--tokens", "1", "--report", file)
        XCTAssertEqual(run.status, 1)
        XCTAssertEqual(run.output, "", "it is known before anything is printed")
        XCTAssert(run.complaint.hasPrefix("decode-demo: the report cannot be written (got \(file)"), run.complaint)
    }

    func testCtrlCEndsWithACompleteLine() throws {
        // The demo handles the signal before it writes its first bytes.
        try interrupt(["--tokens", "1000", "--no-table"], after: "model")
    }

    func testCtrlCEndsTheTable() throws {
        let text = try interrupt(
            ["--tokens", "4", "--passage", "400", "--table", "f16"], after: "dispatches/token")
        XCTAssertFalse(text.contains("held-out"), text)
    }

    func testInterruptionEndsReportCollection() throws {
        let gathering = ReportGathering(isWanted: true)
        var parts: [Double] = []
        XCTAssertThrowsError(
            try gathering.data(
                prompt: [10], text: Array("\nkernel\n".utf8), writing: "", scores: [],
                model: try LanguageModel.bundled(), device: try bestDevice()
            ) { part in
                parts.append(part)
                if parts.count == 3 { throw Interruption.Interrupted() }
            }
        ) { XCTAssert($0 is Interruption.Interrupted) }
        XCTAssertEqual(parts, [0, 0.125, 0.25])
    }

    @discardableResult
    private func interrupt(_ arguments: [String], after part: String) throws -> String {
        let run = try run(process(arguments), interruptedAfter: part)
        XCTAssertEqual(run.status, 130)
        XCTAssertEqual(run.output.last, "\n")
        XCTAssertEqual(run.complaint, "decode-demo: interrupted\n")
        return run.output
    }

    func testUnwritableOutputExitsWithOne() throws {
        for arguments in [["--help"], ["--list-devices"], ["--tokens", "4", "--no-table"]] {
            guard let full = FileHandle(forWritingAtPath: "/dev/full") else {
                throw XCTSkip("only Linux has /dev/full")
            }
            let run = try run(process(arguments), to: full)
            XCTAssertEqual(run.status, 1)
            XCTAssertEqual(run.complaint, "decode-demo: the output cannot be written: No space left on device\n")
        }
    }

    /// Runs the demo with streams closed by a shell.
    private func run(redirection: String, _ arguments: [String]) throws -> Run {
        let demo = try process([])
        let shell = Process()
        shell.environment = demo.environment
        shell.executableURL = URL(fileURLWithPath: "/bin/sh")
        shell.arguments = ["-c", "\"$0\" \"$@\" \(redirection)", demo.executableURL?.path ?? ""] + arguments
        return try run(shell)
    }

    func testClosedStreams() throws {
        let deaf = try run(redirection: "2>&-", ["--tokens", "2", "--no-table"])
        XCTAssertEqual(deaf.status, 0)
        assertContains(deaf.output, ["position 10 of 1024"])
        XCTAssertEqual(try run(redirection: "2>&-", ["--tokens", "x"]).status, 2)
        for arguments in [["--help"], ["--tokens", "2", "--no-table"]] {
            let mute = try run(redirection: ">&-", arguments)
            XCTAssertEqual(mute.status, 1)
            XCTAssertEqual(mute.complaint, "decode-demo: the output cannot be written: Bad file descriptor\n")
        }
        XCTAssertEqual(try run(redirection: ">&- 2>&-", ["--help"]).status, 1)
    }

    func testClosedPipePrintsNoError() throws {
        let output = Pipe()
        try output.fileHandleForReading.close()
        let run = try run(process(["--tokens", "4", "--no-table"]), to: output)
        XCTAssertEqual(run.status, 1)
        XCTAssertEqual(run.complaint, "")
    }

    func testTexts() {
        XCTAssertEqual(
            [0, 999, 1000, 9994, 9996, 99_960, 999_400, 999_600, 269_000_000].map(bytesText),
            ["0 B", "999 B", "1.00 KB", "9.99 KB", "10.0 KB", "100 KB", "999 KB", "1.00 MB", "269 MB"])
        XCTAssertEqual(
            [0.00004, -0.00004, 0.00006, -1].map { signed($0, digits: 4) }, ["0.0000", "0.0000", "+0.0001", "−1.0000"])
        XCTAssertEqual(["a\\nb", "\\\\n", "\\x", "end\\"].map(unescaped), ["a\nb", "\\n", "\\x", "end\\"])
    }
}
