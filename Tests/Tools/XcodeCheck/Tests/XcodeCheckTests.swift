import XCTest
import XcodeCheck

/// The repository's project, and texts that are not projects.
final class XcodeCheckTests: SeededTestCase {
    func testTheProjectIsAccepted() {
        let report = XcodeChecker().check()
        XCTAssertEqual(report.findings.map(\.description), [])
        XCTAssertEqual(
            report.targets.map(\.name),
            [
                "MLXNativeKernels", "MLXNativeKernelsHost", "MLXNativeKernelsTests", "MLXNativeKernelsObjCTests",
                "MLXNativeKernelsCoreTests", "decode-demo", "JargonLM", "DecodeDemo",
            ])
        XCTAssert(report.targets.allSatisfy { $0.files > 0 }, "\(report.targets)")
    }

    func testFindingsHaveTheLineOfTheMistake() throws {
        let text = try XCTUnwrap(repository.text(Self.project))
        let (old, new) = ("remoteInfo = JargonLM;", "remoteInfo = Jargon;")
        let before = try XCTUnwrap(text.firstRange(of: old))
        let line = text[..<before.lowerBound].filter { $0 == "\n" }.count
        let edited = text.replacingFirst(old, with: new)
        let findings = XcodeChecker(repository.seeding([Self.project: edited])).check().findings
        // Objects are reported at their first line.
        XCTAssertEqual(findings.map(\.line), [line - 4], "\(findings)")
    }

    func testGarbageIsRefusedAndNothingCrashes() throws {
        let garbage = [
            "", "{", "}", "(", "\"", "\"\\", "/*", "//", "{ a", "{ a =", "{ a = ;", "{ a = b", "{ = b; }", "( a b )",
            "<00>",
            "{ objects = { }; }", "{ objects = ( ); }", "{ objects = a; }", "{ objects = { A = b; B = { }; }; }",
            "{ rootObject = ( ); objects = { }; }", "\u{0}", "{ a = \u{FFFD}; }", "{ a = ä; }",
            String(repeating: "(", count: 1_000_000), String(repeating: "{a=", count: 1_000_000),
        ]
        for text in garbage {
            let findings = XcodeChecker(repository.seeding([Self.project: text])).check().findings
            XCTAssertFalse(findings.isEmpty, String(text.prefix(40)))
        }
    }

    /// Reading a project with a byte removed, or a truncated one, must terminate.
    func testDamagedProjectsAreRead() throws {
        let bytes = Array(try XCTUnwrap(repository.text(Self.project)).utf8)
        var generator = SeededGenerator(state: 1)
        for _ in 0..<60 {
            var damaged = bytes
            damaged.remove(at: Int.random(in: 0..<damaged.count, using: &generator))
            damaged[Int.random(in: 0..<damaged.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            if Bool.random(using: &generator) {
                damaged.removeLast(Int.random(in: 0..<damaged.count, using: &generator))
            }
            _ = XcodeChecker(repository.seeding([Self.project: String(decoding: damaged, as: UTF8.self)])).check()
        }
    }

    func testAMissingProjectIsNamed() {
        assertRefused([Self.project: nil], "there is no such file")
        let findings = XcodeChecker(Files(root: "/nowhere")).check().findings
        XCTAssertEqual(findings.count, 1)
    }

    private struct SeededGenerator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state ^ (state >> 29)) &* 0xBF58_476D_1CE4_E5B9
        }
    }
}
