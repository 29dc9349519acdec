import Foundation
import XCTest

/// The demo as a process, as a person would run it.
final class DecodeDemoTests: XCTestCase {
    private struct Run {
        let status: Int32
        let output: String
        let complaint: String
    }

    private func run(_ arguments: String...) throws -> Run { try runAll(arguments) }

    private func runAll(_ arguments: [String]) throws -> Run {
        let folder = Bundle(for: Self.self).bundleURL.deletingLastPathComponent()
        let candidates = [folder, Bundle.main.bundleURL].map { $0.appendingPathComponent("decode-demo") }
        let process = Process()
        process.executableURL = try XCTUnwrap(
            candidates.first { FileManager.default.isExecutableFile(atPath: $0.path) },
            "decode-demo is not beside the tests: \(candidates)")
        process.arguments = arguments
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

    func testRingIsDrawnAsItTurns() throws {
        let run = try run("--tokens", "7", "--capacity", "4", "--pin", "1", "--heads", "2", "--head-dim", "8")
        XCTAssertEqual(run.status, 0, run.complaint)
        XCTAssertEqual(run.complaint, "")
        assertContains(
            run.output,
            [
                "[0] ·  ·  · ", "(0)[1] ·  · ", "(0) 1  2 [3]", "(0)[4] 2  3 ", "(0) 4  5 [6]", "7 tokens appended",
                "positions 0 and 4 to 6; 3 overwritten", "16 rows of keys and values", "7 dispatches",
            ])
        XCTAssertFalse(run.output.contains("\u{1B}"), "colors without a terminal")
        XCTAssert(run.output.split(separator: "\n").allSatisfy { $0.count <= 100 }, run.output)
    }

    func testEveryElementTypeIsStoredAndChecked() throws {
        for dtype in ["f32", "f16", "bf16"] {
            let run = try run("--dtype", dtype, "--tokens", "300", "--capacity", "40", "--quiet", "--seed", "9")
            XCTAssertEqual(run.status, 0, run.complaint)
            assertContains(run.output, ["300 tokens appended", "0 to 1 and 262 to 299", "every element", dtype])
        }
    }

    func testManySlotsStayInsideTheScreen() throws {
        let run = try run("--tokens", "3", "--capacity", "100")
        XCTAssertEqual(run.status, 0, run.complaint)
        XCTAssert(run.output.split(separator: "\n").allSatisfy { $0.count <= 100 }, run.output)
    }

    func testFullLinearCacheShowsTheErrorInItsParts() throws {
        let run = try run("--linear", "--capacity", "3", "--tokens", "5")
        XCTAssertEqual(run.status, 1)
        assertContains(run.complaint, ["code      invalidArgument", "got       ", "expected  ", "fix       "])
        assertContains(run.output, [" 0  1 [2]", "3 tokens appended", "positions 0 to 2\n"])
    }

    func testNoTokensIsNoWork() throws {
        let run = try run("--tokens", "0")
        XCTAssertEqual(run.status, 0, run.complaint)
        assertContains(run.output, ["0 tokens appended", "kept         nothing"])
    }

    func testHelpNamesEveryOption() throws {
        let run = try run("--help")
        XCTAssertEqual(run.status, 0)
        assertContains(
            run.output,
            [
                "usage:", "--tokens", "--capacity", "--heads", "--head-dim", "--dtype", "--pin", "--linear", "--seed",
                "--quiet", "--help",
            ])
    }

    func testBadArgumentsAreExplained() throws {
        for (arguments, message) in [
            (["--tokens"], "--tokens needs a value"), (["--tokens", "many"], "from 0 to 1000000, not many"),
            (["--tokens", "-1"], "not -1"), (["--capacity", "0"], "from 1 to 1000000, not 0"),
            (["--dtype", "u8"], "f32, f16 or bf16, not u8"), (["--pin", "12"], "leaves no slot"),
            (["--linear", "--pin", "1"], "no meaning with --linear"), (["--fast"], "--fast is not an option"),
            (["extra"], "extra is not an option"), (["--seed", "1.5"], "not 1.5"),
        ] {
            let run = try runAll(arguments)
            XCTAssertEqual(run.status, 2, "\(arguments)")
            XCTAssertEqual(run.output, "", "\(arguments)")
            assertContains(run.complaint, [message, "--help"])
        }
    }
}
