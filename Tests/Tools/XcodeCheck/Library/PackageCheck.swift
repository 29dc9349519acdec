import Foundation

/// Checks that the project builds what the package builds on a Mac: each file in one target, Linux-only files in none.
struct PackageCheck {
    /// Folders whose files are compiled on a Mac, and their target.
    private static let folders = [
        ("Sources/MLXNativeKernelsCore", "MLXNativeKernels"), ("Sources/MLXNativeKernels", "MLXNativeKernels"),
        ("Shaders", "MLXNativeKernels"), ("Sources/MLXNativeKernelsHost", "MLXNativeKernelsHost"),
        ("Tests/MLXNativeKernelsTests", "MLXNativeKernelsTests"), (testFolder, tests),
        ("Tests/MLXNativeKernelsObjCTests", "MLXNativeKernelsObjCTests"), ("Examples/decode-demo", "decode-demo"),
        ("Examples/JargonLM", "JargonLM"), ("Examples/DecodeDemo", "DecodeDemo"),
    ]
    /// Folders with C++ files that are compiled through unified files, and their targets.
    private static let unified = [
        "Sources/MLXNativeKernelsCore": ["MLXNativeKernelsCore"],
        "Sources/MLXNativeKernelsHost": ["MLXNativeKernelsHost"], testFolder: [tests, "MLXNativeKernelsTestSupport"],
    ]
    private static let tests = "MLXNativeKernelsCoreTests"
    private static let testFolder = "Tests/Core"

    static func findings(_ project: Project, _ membership: Membership, _ files: Files) -> [Finding] {
        guard let text = files.text(Manifest.path) else {
            return [Finding(Manifest.path, "there is no such file. Restore it.")]
        }
        let manifest = Manifest(text)
        // Tests of the software Metal, which a Mac lacks.
        let excluded = Set(
            included(by: files.below(testFolder).filter { $0.hasPrefix("UnifiedMetal/") }, in: testFolder, files)
                .map { $0.prefix { $0 != "/" } })
        var wanted: [String: String] = [:]
        for (folder, target) in folders {
            for path in files.below(folder) where Membership.compiled.contains(Files.kind(of: path)) {
                let isExcluded = target == tests && excluded.contains { path.hasPrefix($0 + "/") }
                let full = "\(folder)/\(path)"
                if !isExcluded && !isForSwiftPM(full) { wanted[full] = target }
            }
        }
        return compare(wanted, project, membership) + unified.keys.flatMap { left(out: $0, wanted, manifest, files) }
            + shaders(manifest, membership)
    }

    /// Xcode compiles the files that a unified file includes, and creates no bundle of the kernels.
    private static func isForSwiftPM(_ path: String) -> Bool {
        path.contains("/Unified") || path == "Shaders/ShaderBundle.swift"
    }

    private static func compare(_ wanted: [String: String], _ project: Project, _ membership: Membership) -> [Finding] {
        var findings: [Finding] = []
        var owners: [String: [String]] = [:]
        for target in membership.targets {
            for path in target.compiled { owners[path, default: []].append(target.name) }
            for path in target.compiled where wanted[path] == nil {
                let reason =
                    isForSwiftPM(path) ? "is for SwiftPM alone" : "the package does not compile for a Mac"
                let message = "\(target.name) compiles \(path), which \(reason)"
                findings.append(Finding(project.path, line: target.line, "\(message). Add it to membershipExceptions."))
            }
        }
        for (path, target) in wanted where owners[path] != [target] {
            let got = owners[path]?.sorted().joined(separator: " and ") ?? "no target"
            findings.append(
                Finding(project.path, "\(path) is compiled by \(got) (expected \(target) alone). Correct the folders."))
        }
        return findings
    }

    /// Files that the project compiles but the package neither names nor includes in a file that it names.
    private static func left(
        out folder: String, _ wanted: [String: String], _ manifest: Manifest, _ files: Files
    ) -> [Finding] {
        let sources = (unified[folder] ?? []).flatMap { manifest.sources(of: $0) }
        let named = files.below(folder).filter { path in sources.contains { path == $0 || path.hasPrefix($0 + "/") } }
        let includes = included(by: named.filter { isForSwiftPM("\(folder)/\($0)") }, in: folder, files)
        let compiled = Set((named + includes).map { "\(folder)/\($0)" })
        return wanted.keys.filter { $0.hasPrefix(folder + "/") && !compiled.contains($0) }.map { path in
            Finding(path, "the package does not compile this file. Include it in a file in \(folder)/Unified.")
        }
    }

    /// The non-header files that the unified files among these paths include.
    private static func included(by paths: [String], in folder: String, _ files: Files) -> [String] {
        paths.flatMap { path in
            (files.text("\(folder)/\(path)") ?? "").split(separator: "\n").filter { $0.hasPrefix("#include \"") }
                .compactMap { $0.split(separator: "\"").dropFirst().first.map(String.init) }
                .filter { $0.hasSuffix(".cpp") }
        }
    }

    private static func shaders(_ manifest: Manifest, _ membership: Membership) -> [Finding] {
        let listed = Set(manifest.resources(of: "MLXNativeKernelsShaders", "process"))
        let compiled = Set(membership.targets.flatMap(\.compiled).filter { $0.hasSuffix(".metal") })
        return listed.symmetricDifference(compiled).map { path in
            let (has, lacks) = listed.contains(path) ? ("package", "project") : ("project", "package")
            return Finding(Manifest.path, "the \(has) compiles \(path), and the \(lacks) does not. Add it there.")
        }
    }
}
