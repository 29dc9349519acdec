import Foundation

/// Compiles kernel source in clang's C++-for-OpenCL mode, which has real address spaces, against this tool's headers.
struct StrictCompile: Sendable {
    let clang: Clang
    let headers: StrictHeaders
    let list: FunctionList
    let layout: Layout

    struct Outcome {
        var findings: [Finding] = []
        /// The indices of the list's rows that the source uses.
        var usedRows: Set<Int> = []
    }

    /// Metal 3.1, the version of the oldest supported systems.
    static let oldestVersion = "-D__METAL_VERSION__=310"
    /// Metal 3.2, which enables code that is conditional on it.
    static let newestVersion = "-D__METAL_VERSION__=320"

    /// The combined findings of both versions.
    func callAsFunction(_ file: String) throws -> Outcome {
        var outcome = try compiled(file, as: Self.oldestVersion)
        let newest = try compiled(file, as: Self.newestVersion)
        outcome.findings += newest.findings.filter { !outcome.findings.contains($0) }
        outcome.usedRows.formUnion(newest.usedRows)
        return outcome
    }

    private func compiled(_ file: String, as version: String) throws -> Outcome {
        let output = try clang.run(
            [
                "-x", "clcpp", "-cl-std=clc++2021", "-fsyntax-only", "-nostdinc", version,
                // Disables OpenCL's functions, double, and variables at file scope other than constants.
                "-cl-no-stdinc", "-Xclang",
                "-cl-ext=-cl_khr_fp64,-__opencl_c_fp64,-__opencl_c_device_enqueue,"
                    + "-__opencl_c_program_scope_global_variables",
                // Metal 3 is C++14. Uses of the list are reported as deprecated.
                "-Wno-everything", "-Wdeprecated-declarations", "-Werror=pre-c++17-compat",
                // The lint checks attributes.
                "-Werror=ignored-attributes", "-Werror=return-type",
                "-Werror=uninitialized", "-Werror=array-bounds", "-Werror=shift-count-overflow", "-Werror=vla",
                "-Werror=c++20-extensions", "-Werror=c++20-designator", "-Werror=c99-designator",
                "-Werror=unused-label", "-Werror=gnu-label-as-value",
                "-fno-color-diagnostics", "-fno-caret-diagnostics", "-ferror-limit=0",
                "-fno-elide-type",
                "-isystem", headers.declarations, "-isystem", layout.headers,
                "-include", layout.metalCompat, "-include", "\(layout.headers)/MetalCompat.h", file,
            ])
        var outcome = Outcome()
        let diagnostics = Clang.diagnostics(in: output.standardError)
        for diagnostic in diagnostics {
            if let row = FunctionList.usedRow(in: diagnostic.message) {
                outcome.usedRows.insert(row)
            } else if diagnostic.severity.hasSuffix("error"), let finding = finding(for: diagnostic) {
                outcome.findings.append(finding)
            }
        }
        if output.status != 0, !diagnostics.contains(where: { $0.severity.hasSuffix("error") }) {
            let lines = output.standardError.split(separator: "\n")
            outcome.findings.append(
                Finding(.compile, file: layout.shown(file), line: 1, "clang failed: \(lines.last ?? "it said nothing")")
            )
        }
        // A refused call has no value, which causes follow-up errors.
        func place(_ finding: Finding) -> String { "\(finding.file):\(finding.line)" }
        let refused = Set(outcome.findings.filter { $0.checker == .list }.map(place))
        outcome.findings.removeAll { $0.checker == .compile && refused.contains(place($0)) }
        return outcome
    }

    private func finding(for diagnostic: Clang.Diagnostic) -> Finding? {
        // The lint reports these in more detail.
        let missing = diagnostic.message.firstMatch(of: /^(?:use of undeclared identifier|no member named) '(\w+)'/)
        if let missing, Lint.twoVariants.union(Lint.classifiers).contains(String(missing.1)),
            !diagnostic.message.contains("in namespace 'metal::")
        {
            return nil
        }
        let place = place(of: diagnostic)
        if let call = diagnostic.message.firstMatch(of: /call to deleted function '(?:as_type<)?([^'<]*)/) {
            return Finding(.list, file: place.file, line: place.line, notListed(String(call.1), diagnostic))
        }
        var message = diagnostic.message.replacing(/\ \[-Werror,[^\]]*\]$|; did you mean .*/, with: "")
        let said = ([message] + diagnostic.notes.map(\.message)).joined(separator: "\n")
        for (sign, advice) in Self.advice where said.contains(sign) { message += ". \(advice)" }
        let isOfLibrary = message.contains("undeclared identifier") || message.contains("in namespace 'metal")
        return Finding(isOfLibrary ? .list : .compile, file: place.file, line: place.line, message)
    }

    /// The location in the kernel source, even if the error is in one of this tool's headers.
    private func place(of diagnostic: Clang.Diagnostic) -> (file: String, line: Int) {
        func isOurs(_ file: String) -> Bool { file.hasPrefix(headers.declarations) || file.hasPrefix(layout.headers) }
        if isOurs(diagnostic.file), let note = diagnostic.notes.first(where: { !isOurs($0.file) }) {
            return (layout.shown(note.file), note.line)
        }
        return (layout.shown(diagnostic.file), diagnostic.line)
    }

    private func notListed(_ name: String, _ diagnostic: Clang.Diagnostic) -> String {
        let types = diagnostic.notes.lazy.compactMap { $0.message.firstMatch(of: /\[with (.*)\]/) }.first
        let listed = list.rows.filter { $0.name == name || $0.name.hasPrefix("\(name)<") }.map(\.declaration)
        return "\(name) is not on the list for these types (got \(types.map { String($0.1) } ?? "others"), expected "
            + "\(listed.joined(separator: " or "))). Convert the arguments, or add a row with its evidence."
    }

    private static let advice: [(sign: String, advice: String)] = [
        (
            "use of undeclared identifier",
            "If it is a function of Metal's library, add a row with its evidence to the list of functions."
        ),
        ("in namespace 'metal", "If it is a function of Metal's library, add a row with its evidence to the list."),
        ("cannot be declared in local address space", "Write threadgroup_array(type, name, count) in the kernel."),
        ("requires cl_khr_fp64", "Metal has no double."),
        ("incompatible operand types ('__private", "Write both sides as values: float4(v)."),
        ("from 'bfloat' (aka '__bf16') to 'half'", "Go through float."),
        (
            "in address space '__constant' to object in address space '__generic'",
            "A structure does not leave constant memory as a whole here: copy its members."
        ),
    ]
}
