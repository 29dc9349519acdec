import Foundation
import ShaderCheck
import XCTest

/// Sources with one fault each, in Rejected, and valid ones, in Accepted. Their first lines say which check must refuse
/// them, with which words, and whether the Host device's compile also refuses them:
///
///     // shader-check lint: lambda expression
///     // host accepts
final class SeededTextTests: XCTestCase {
    private let layout = Layout()

    private func texts(in folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".metal") }.sorted()
            .map { "\(folder)/\($0)" }
    }

    /// These sources may use every function of both lists.
    private func checker() throws -> ShaderChecker {
        try ShaderChecker(list: FunctionList(tables: [layout.functions, layout.testFunctions]))
    }

    func testEveryRejectedTextIsRefusedForItsFault() throws {
        let files = try texts(in: layout.rejected)
        XCTAssertGreaterThan(files.count, 50)
        for (file, report) in zip(files, try checker().checkEach(files)) {
            let expected = try String(contentsOfFile: file, encoding: .utf8).matches(
                of: /\/\/ shader-check (\w+): (.*)/
            )
            .map { (checker: String($0.1), words: String($0.2)) }
            let findings = report.findings
            let name = layout.shown(file)
            XCTAssertFalse(expected.isEmpty, "\(name) does not say who refuses it")
            for expectation in expected {
                XCTAssert(
                    findings.contains { matches($0, expectation) },
                    "\(name): expected \(expectation.checker) to say \"\(expectation.words)\", got \(findings)")
            }
            for finding in findings {
                XCTAssert(expected.contains { matches(finding, $0) }, "\(name): an unexpected reason: \(finding)")
                XCTAssertEqual(finding.file, name)
                XCTAssertGreaterThan(finding.line, expected.count, "\(name): \(finding)")
            }
        }
    }

    private func matches(_ finding: Finding, _ expected: (checker: String, words: String)) -> Bool {
        finding.checker.rawValue == expected.checker && finding.message.contains(expected.words)
    }

    func testAcceptedTextsAreAccepted() throws {
        let files = try texts(in: layout.accepted)
        XCTAssertFalse(files.isEmpty)
        for (file, report) in zip(files, try checker().checkEach(files)) {
            XCTAssertEqual(report.findings, [])
            // A source that was parsed wrongly may lose some of its kernels, and then its findings.
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let exports = text.split(separator: "\n").filter { $0.contains(/^(export|instantiate)_kernel\(/) }
            XCTAssertFalse(exports.isEmpty, layout.shown(file))
            XCTAssertEqual(report.exports.count, exports.count, layout.shown(file))
        }
    }

    func testHostCompileAnswersAsNoted() throws {
        let files = try texts(in: layout.rejected) + texts(in: layout.accepted)
        for (file, accepts) in zip(files, try HostCompile().accepts(files)) {
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let noted = text.firstMatch(of: /\/\/ host (accepts|refuses)/).map { String($0.1) }
            XCTAssertEqual(noted, accepts ? "accepts" : "refuses", layout.shown(file))
        }
    }
}
