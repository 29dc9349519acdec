import Foundation

/// Checks whether Apple's compiler would accept kernel sources, and whether they mean the same as on the Host device,
/// as far as possible without Apple's compiler: with a strict compile, a list of functions, and a lint.
public struct ShaderChecker: Sendable {
    public struct Report: Sendable {
        public var findings: [Finding] = []
        /// The names that the checked files export.
        public var exports: [String] = []
        /// The indices of the used rows of the list.
        public var usedRows: Set<Int> = []
        public var files = 0
    }

    public let list: FunctionList
    private let layout: Layout
    private let clang: Clang
    private let headers: StrictHeaders

    public init(layout: Layout = Layout(), list: FunctionList, clang: String? = nil) throws {
        self.layout = layout
        self.list = list
        self.clang = try Clang(path: clang)
        headers = try StrictHeaders(list: list)
    }

    /// One report for all files.
    public func check(_ files: [String]) throws -> Report {
        var all = Report()
        for report in try checkEach(files) {
            all.findings += report.findings
            all.exports += report.exports
            all.usedRows.formUnion(report.usedRows)
            all.files += report.files
        }
        all.findings = Set(all.findings).sorted()  // a header that two files include is reported once
        return all
    }

    /// A report for each file.
    public func checkEach(_ files: [String]) throws -> [Report] { try concurrently(files, check) }

    private func check(_ file: String) throws -> Report {
        guard FileManager.default.isReadableFile(atPath: file) else {
            let message = "no such file (expected a .metal file or a header). Correct the path."
            return Report(findings: [Finding(.compile, file: file, line: 1, message)])
        }
        let path = URL(fileURLWithPath: file).path
        let compiled = try StrictCompile(clang: clang, headers: headers, list: list, layout: layout)(path)
        let lint = Lint(tokens: try tokens(of: path))
        return Report(
            findings: Set(compiled.findings + lint.findings).sorted(), exports: lint.exports,
            usedRows: compiled.usedRows,
            files: 1)
    }

    /// Findings for rows that no source uses: an unused entry has no evidence.
    public func unusedRows(_ report: Report) -> [Finding] {
        list.rows.indices.filter { !report.usedRows.contains($0) }.map { index in
            let row = list.rows[index]
            return Finding(
                .list, file: layout.shown(row.file), line: row.line,
                "no kernel uses \(row.declaration). Remove the row, or give all files that ship.")
        }
    }

    /// The tokens that a Mac's compiler would read, without those of Metal's headers.
    private func tokens(of path: String) throws -> [Token] {
        let output = try clang.run(
            [
                "-E", "-x", "c++", "-std=c++14", "-nostdinc", StrictCompile.newestVersion, "-Wno-everything",
                "-isystem",
                headers.empty,
                "-include", layout.metalCompat, "-include", "\(headers.empty)/KeepWords.h", path,
            ])
        let tokens = Tokenizer.tokens(of: output.standardOutput, file: layout.shown(path), shown: layout.shown)
        // MetalCompat.h comes first, and opens namespace metal for all files.
        return tokens.filter { !$0.file.hasPrefix("<") && !$0.file.hasPrefix(headers.empty) }
    }
}

extension Layout {
    /// Lines of source as Metal's compiler sees them, with the macros of Shaders/Common/MetalCompat.h expanded.
    public func wordsAsMetal(_ lines: [String], clang: String? = nil) throws -> [String] {
        let headers = try StrictHeaders(list: FunctionList())
        let file = "\(headers.empty)/Lines.metal"
        let text = "#include \"\(metalCompat)\"\n" + lines.map { "line_begins \($0)\n" }.joined()
        try text.write(toFile: file, atomically: false, encoding: .utf8)
        let output = try Clang(path: clang).run(
            ["-E", "-P", "-x", "c++", StrictCompile.oldestVersion, "-isystem", headers.empty, file])
        return output.standardOutput.components(separatedBy: "line_begins").dropFirst().map { $0 }
    }
}
