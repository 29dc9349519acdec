import Foundation
import ShaderCheck
import XCTest

final class ShaderCheckTests: XCTestCase {
    private let layout = Layout()

    /// All shipped files of this kind, in the folders of ops and of what they share.
    private func shaders(_ kind: String) throws -> [String] {
        let root = "\(layout.root)/Shaders"
        return try FileManager.default.subpathsOfDirectory(atPath: root).filter { $0.hasSuffix(kind) }.sorted()
            .map { "\(root)/\($0)" }
    }

    /// For tests that need only one kernel file.
    private var oneShader: String { "\(layout.root)/Shaders/KVCacheWrite/KVCacheWrite.metal" }

    /// `make shaders` checks all shaders on every commit.
    private func onlyInFullRuns() throws {
        try XCTSkipUnless(ProcessInfo.processInfo.environment["MNK_TEST_FULL"] != nil, "make check runs this")
    }

    func testEveryShaderThatShipsIsAccepted() throws {
        try onlyInFullRuns()
        let checker = try ShaderChecker(list: FunctionList(tables: [layout.functions]))
        let kernels = try shaders(".metal")
        let report = try checker.check(kernels + shaders(".h"))
        XCTAssertEqual(report.findings, [])
        XCTAssertEqual(checker.unusedRows(report), [])
        XCTAssertGreaterThanOrEqual(report.exports.count, 10)
        XCTAssertEqual(Set(report.exports).count, report.exports.count, "two kernels share a name")
    }

    /// Each row is needed: without it, kernels are refused.
    func testEveryRowOfTheListIsNeeded() throws {
        try onlyInFullRuns()
        let full = try FunctionList(tables: [layout.functions])
        let kernels = try shaders(".metal")
        let text = try String(contentsOfFile: layout.functions, encoding: .utf8)
        XCTAssertFalse(full.rows.isEmpty)
        // Without a row, a kernel that uses it fails; one with few other functions compiles fast.
        let users = zip(kernels, try ShaderChecker(list: full).checkEach(kernels).map(\.usedRows))
            .sorted { $0.1.count < $1.1.count }
        for (index, row) in full.rows.enumerated() {
            let user = try XCTUnwrap(users.first { $0.1.contains(index) }?.0, "no kernel uses \(row.declaration)")
            var fewer = FunctionList()
            try fewer.add(
                text.split(separator: "\n").filter { !$0.hasPrefix(row.declaration + "\t") }.joined(separator: "\n"),
                from: "fewer.tsv")
            XCTAssertEqual(fewer.rows.count, full.rows.count - 1)
            let findings = try ShaderChecker(list: fewer).check([user]).findings
            XCTAssert(findings.contains { $0.checker == .list }, "nothing misses \(row.declaration): \(findings)")
        }
    }

    func testAnUnusedRowIsReported() throws {
        var list = try FunctionList(tables: [layout.functions])
        try list.add("float precise::tan(float)\tMSL 6.5\t6 ulp\t-\n", from: "more.tsv")
        let checker = try ShaderChecker(list: list)
        let report = try checker.check([oneShader])
        let unused = checker.unusedRows(report)
        XCTAssertFalse(report.usedRows.isEmpty)
        XCTAssertEqual(unused.count, list.rows.count - report.usedRows.count)
        let words = "more.tsv:1: no kernel uses float precise::tan(float)"
        XCTAssert(unused.contains { $0.description.hasPrefix(words) }, "\(unused)")
    }

    func testTablesSayWhatIsWrongWithARow() {
        for (row, words) in [
            ("float precise::exp(float)\tMSL 6.5\n", "four filled columns"),
            ("precise::exp\tMSL 6.5\t4 ulp\t-\n", "is a declaration"),
            ("float precise::exp(float)\t\t4 ulp\t-\n", "four filled columns"),
        ] {
            var list = FunctionList()
            XCTAssertThrowsError(try list.add("# comment\n" + row, from: "bad.tsv")) { error in
                XCTAssert("\(error)".hasPrefix("bad.tsv:2: "), "\(error)")
                XCTAssert("\(error)".contains(words), "\(error)")
            }
        }
        XCTAssertThrowsError(try FunctionList(tables: ["nowhere.tsv"]))
    }

    func testTheCompilerBlamesABadRowOnItsTable() throws {
        var list = FunctionList()
        try list.add("# comment\nflaot precise::tan(float)\tMSL 6.5\t6 ulp\t-\n", from: "bad.tsv")
        let findings = try ShaderChecker(list: list).check([oneShader]).findings
        XCTAssert(findings.contains { $0.description.hasPrefix("bad.tsv:2: unknown type name 'flaot'") }, "\(findings)")
    }

    /// The names under which a Mac finds the kernels, with macros expanded.
    func testExportedNamesAreWholeNames() throws {
        let report = try ShaderChecker(list: FunctionList(tables: [layout.functions])).check([oneShader])
        XCTAssert(report.exports.contains("kvCacheMove_16"), "\(report.exports)")
        XCTAssert(report.exports.contains("kvCacheConvert_bf16_f16"), "\(report.exports)")
    }

    func testAMissingFileIsAFinding() throws {
        let findings = try ShaderChecker(list: FunctionList()).check(["nowhere.metal"]).findings
        XCTAssertEqual(findings.count, 1)
        XCTAssert(findings.first?.description.hasPrefix("nowhere.metal:1: no such file") == true, "\(findings)")
    }

    func testAMissingCompilerIsNamed() {
        XCTAssertThrowsError(try ShaderChecker(list: FunctionList(), clang: "no-such-clang")) { error in
            XCTAssert("\(error)".contains("no-such-clang"), "\(error)")
        }
    }

    /// The strict compile and the lint replace the macros of MetalCompat.h; this checks what a Mac sees.
    func testWordsBecomeMetal() throws {
        let cases = [
            ("threadgroup_array(float, s, 32);", "threadgroup float s[32];"),
            ("threadgroup float* s [[threadgroup_memory(0)]]", "threadgroup float* s [[threadgroup(0)]]"),
            ("pipeline_constant(bool, hasMask, 3);", "constant bool hasMask [[function_constant(3)]];"),
            (
                "instantiate_kernel(\"k_f16\", k, half, 4)",
                "template [[host_name(\"k_f16\")]] [[kernel]] decltype(k<half, 4>) k<half, 4>;"
            ),
            ("export_kernel(fill)", ""),
        ]
        let expanded = try layout.wordsAsMetal(cases.map(\.0))
        XCTAssertEqual(expanded.count, cases.count)
        for ((word, metal), text) in zip(cases, expanded) {
            XCTAssertEqual(text.filter { !$0.isWhitespace }, metal.filter { !$0.isWhitespace }, word)
        }
    }
}
