import Foundation

/// The project builds what the package builds on a Mac, and an app: each file in one target, and what is for Linux in none.
struct PackageCheck {
    /// Folders whose files are compiled for a Mac, and the target that does so.
    private static let folders = [
        ("Sources/MLXNativeKernelsCore", "MLXNativeKernels"), ("Sources/MLXNativeKernels", "MLXNativeKernels"),
        ("Shaders/Kernels", "MLXNativeKernels"), ("Tests/MLXNativeKernelsTests", "MLXNativeKernelsTests"),
        ("Tests/Core", "CoreTests"), ("Tests/MLXNativeKernelsObjCTests", "MLXNativeKernelsObjCTests"),
        ("Examples/decode-demo", "decode-demo"), ("Examples/JargonLM", "JargonLM"),
        ("Examples/DecodeDemo", "DecodeDemo"),
    ]
    private static let manifest = "Package.swift"

    static func findings(_ project: Project, _ membership: Membership, _ files: Files) -> [Finding] {
        guard let text = files.text(manifest) else { return [Finding(manifest, "there is no such file. Restore it.")] }
        guard let excluded = excludedTests(in: text) else {
            return [
                Finding(manifest, "the folders that CoreTests leaves out on a Mac are not found. Teach xcode-check.")
            ]
        }
        var wanted: [String: String] = [:]
        for (folder, target) in folders {
            for path in files.below(folder) where Membership.compiled.contains(Files.kind(of: path)) {
                let isExcluded = folder == "Tests/Core" && excluded.contains { path.hasPrefix($0 + "/") }
                if !isExcluded { wanted["\(folder)/\(path)"] = target }
            }
        }
        return compare(wanted, project, membership) + shaders(text, membership)
    }

    private static func compare(_ wanted: [String: String], _ project: Project, _ membership: Membership) -> [Finding] {
        var findings: [Finding] = []
        var owners: [String: [String]] = [:]
        for target in membership.targets {
            for path in target.compiled { owners[path, default: []].append(target.name) }
            for path in target.compiled where wanted[path] == nil {
                let message = "\(target.name) compiles \(path), which the package does not compile for a Mac"
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

    /// The second list of the line that describes the C++ tests: `exclude: softMetal ? [] : ["Metal", "SoftMetal"]`.
    private static func excludedTests(in manifest: String) -> [String]? {
        guard let line = manifest.split(separator: "\n").first(where: { $0.contains("path: \"Tests/Core\"") }),
            let colon = line.firstRange(of: "? [] : ["), let end = line[colon.upperBound...].firstIndex(of: "]")
        else { return nil }
        return line[colon.upperBound..<end].split(separator: ",").map {
            $0.trimmingCharacters(in: .init(charactersIn: " \""))
        }
    }

    private static func shaders(_ manifest: String, _ membership: Membership) -> [Finding] {
        let named = manifest.split(separator: "\"").filter { $0.hasPrefix("../../Shaders/") && $0.hasSuffix(".metal") }
        let listed = Set(named.map { String($0.dropFirst("../../".count)) })
        let compiled = Set(membership.targets.flatMap(\.compiled).filter { $0.hasSuffix(".metal") })
        return listed.symmetricDifference(compiled).map { path in
            let (has, lacks) = listed.contains(path) ? ("package", "project") : ("project", "package")
            return Finding(Self.manifest, "the \(has) compiles \(path), and the \(lacks) does not. Add it there.")
        }
    }
}
