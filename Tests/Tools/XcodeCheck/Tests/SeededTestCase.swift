import XCTest
import XcodeCheck

/// Seeds a fault into the repository's own project, in memory.
class SeededTestCase: XCTestCase {
    static let project = XcodeChecker.project
    private static let shared = Files()
    var repository: Files { Self.shared }

    /// Shows that a check can fail: after one edit, the project is refused with these words.
    func assertRefused(
        _ file: String, _ old: String, _ new: String, _ words: String, test: StaticString = #filePath,
        line: UInt = #line
    ) throws {
        let text = try XCTUnwrap(repository.text(file), "there is no \(file)", file: test, line: line)
        let edited = text.replacingFirst(old, with: new)
        XCTAssertNotEqual(edited, text, "\(file) has no: \(old)", file: test, line: line)
        assertRefused([file: edited], words, test: test, line: line)
    }

    func assertRefused(
        _ seeded: [String: String?], _ words: String, test: StaticString = #filePath, line: UInt = #line
    ) {
        let findings = XcodeChecker(repository.seeding(seeded)).check().findings
        XCTAssert(
            findings.contains { $0.description.contains(words) },
            "not refused with \"\(words)\", but with: \(findings.map(\.description))", file: test, line: line)
    }
}

extension String {
    func replacingFirst(_ old: String, with new: String) -> String {
        guard let range = firstRange(of: old) else { return self }
        return replacingCharacters(in: range, with: new)
    }
}
