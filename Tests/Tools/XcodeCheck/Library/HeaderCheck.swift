import Foundation

/// Checks the framework's headers: the module has those for C and Objective-C, and each has one path. During a build,
/// headers exist both in the sources and in the product; a header without a guard that is included by both paths is
/// read twice.
struct HeaderCheck {
    static func findings(_ project: Project, _ membership: Membership, _ files: Files) -> [Finding] {
        guard let framework = membership.targets.first(where: \.isFramework) else {
            return [Finding(project.path, "the project has no framework. Add the target.")]
        }
        let sources = membership.targets.filter(\.isLibrary).flatMap { $0.compiled.union($0.headers) }.filter {
            !$0.hasSuffix(".swift") && !$0.hasSuffix(".metal")
        }
        let headers = framework.publicHeaders.map { ($0 as NSString).lastPathComponent }
        return module(project, headers, files) + sources.flatMap { includes($0, files.text($0) ?? "") }
    }

    private static func module(_ project: Project, _ headers: [String], _ files: Files) -> [Finding] {
        let file = "\(project.folder)/Configuration/MLXNativeKernels.modulemap"
        guard let text = files.text(file) else { return [Finding(file, "there is no module map. Restore it.")] }
        var (findings, listed, isObjectiveC): ([Finding], Set<String>, Bool) = ([], [], false)
        for (index, line) in text.components(separatedBy: "\n").enumerated() {
            let words = line.split(separator: " ")
            if words == ["requires", "objc"] { isObjectiveC = true }
            if words.first == "}" { isObjectiveC = false }
            if words.contains("umbrella"), words.first != "//" {
                let message = "an umbrella takes in the C++ headers. List the others instead."
                findings.append(Finding(file, line: index + 1, message))
            }
            guard words.count == 2, words[0] == "header" else { continue }
            let name = words[1].trimmingCharacters(in: .init(charactersIn: "\""))
            func add(_ message: String) { findings.append(Finding(file, line: index + 1, message)) }
            if !listed.insert(name).inserted { add("\(name) is named twice. Remove one.") }
            if !headers.contains(name) { add("\(name) is no public header of the framework. Correct the name.") }
            if name.hasSuffix(".hpp") { add("\(name) is C++, which nobody could import. Remove it.") }
            if name.hasPrefix("MNK") != isObjectiveC {
                add("\(name) belongs \(isObjectiveC ? "outside" : "into") the part that requires objc. Move it.")
            }
        }
        for name in headers.filter({ $0.hasSuffix(".h") }).sorted() where !listed.contains(name) {
            findings.append(Finding(file, "\(name) is a public header, and is missing here. Add it."))
        }
        return findings
    }

    private static func includes(_ file: String, _ text: String) -> [Finding] {
        // Few files have a line that could be wrong.
        let suspects = ["<MLXNativeKernels/", "\"MLXNativeKernels/MNK"]
        let isSuspect = suspects.contains { (start: String) in strstr(text, start) != nil }
        guard isSuspect else { return [] }
        let lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return lines.enumerated().compactMap { index, bytes in
            guard bytes.first == UInt8(ascii: "#"), let line = String(bytes) else { return nil }
            let words = line.split(separator: " ")
            guard words.count >= 2, words[0] == "#include" || words[0] == "#import" else { return nil }
            let name = words[1].dropFirst().dropLast()
            guard name.hasPrefix("MLXNativeKernels/") else { return nil }
            let isAngled = words[1].hasPrefix("<")
            if name.hasSuffix(".hpp"), isAngled {
                let message = "C++ headers of the core are included in quotes (got \(line)). Use them."
                return Finding(file, line: index + 1, message)
            }
            if name.hasPrefix("MLXNativeKernels/MNK"), !isAngled {
                let message = "headers of Objective-C are imported in angle brackets (got \(line)). Use them."
                return Finding(file, line: index + 1, message)
            }
            return nil
        }
    }
}
