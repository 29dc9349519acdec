import Foundation

/// Checks that .xcconfig files include files, set settings, and name paths that exist.
struct ConfigurationCheck {
    private let project: Project
    private let files: Files
    private let submodules: [String]
    private var findings: [Finding] = []
    /// The project's settings that some file defines.
    private var defined = Set<String>()

    static func findings(_ project: Project, _ paths: Paths, _ files: Files) -> [Finding] {
        var check = ConfigurationCheck(project, files)
        let used = project.all("XCBuildConfiguration").compactMap { $0.text("baseConfigurationReference") }
        let named = Set(used.compactMap { paths.byID[$0] })
        let folders = Set(named.map { ($0 as NSString).deletingLastPathComponent })
        let found = folders.flatMap { folder in
            files.below(folder).filter { $0.hasSuffix(".xcconfig") }.map { "\(folder)/\($0)" }
        }
        let texts = Set(found).sorted().map { ($0, files.text($0) ?? "") }
        for (_, text) in texts { check.define(text) }
        var reached = named
        for (file, text) in texts { reached.formUnion(check.read(file, text)) }
        for file in found where !reached.contains(file) {
            check.add(file, 1, "nothing uses this file. Use it, or remove it.")
        }
        for configuration in project.all("XCBuildConfiguration") { check.settings(of: configuration) }
        return check.findings
    }

    private init(_ project: Project, _ files: Files) {
        self.project = project
        self.files = files
        submodules = (files.text(".gitmodules") ?? "").split(separator: "\n").compactMap { line in
            let parts = line.split(separator: "=").map { $0.trimmingCharacters(in: .whitespaces) }
            return parts.count == 2 && parts[0] == "path" ? parts[1] : nil
        }
    }

    private mutating func add(_ file: String, _ line: Int, _ message: String) {
        findings.append(Finding(file, line: line, message))
    }

    /// Lines without comments, with their numbers.
    private static func lines(_ text: String) -> [(number: Int, text: String)] {
        text.components(separatedBy: "\n").enumerated().compactMap { index, line in
            let code = line.components(separatedBy: "//")[0].trimmingCharacters(in: .whitespaces)
            return code.isEmpty ? nil : (index + 1, code)
        }
    }

    private mutating func define(_ text: String) {
        for line in Self.lines(text) where line.text.hasPrefix(BuildSetting.ours) {
            defined.insert(String(line.text.prefix { $0.isLetter || $0 == "_" }))
        }
    }

    /// Returns the files that it includes.
    private mutating func read(_ file: String, _ text: String) -> [String] {
        var (included, seen): ([String], Set<String>) = ([], [])
        for (number, line) in Self.lines(text) {
            if line.hasPrefix("#") {
                let parts = line.components(separatedBy: "\"")
                guard parts.count == 3,
                    ["#include", "#include?"].contains(parts[0].trimmingCharacters(in: .whitespaces))
                else {
                    add(file, number, "\(line) is no include (expected #include \"Name.xcconfig\"). Correct it.")
                    continue
                }
                let path = Files.clean("\((file as NSString).deletingLastPathComponent)/\(parts[1])")
                included.append(path)
                if !files.isFile(path) { add(file, number, "there is no file \(path). Correct the include.") }
                continue
            }
            guard let equal = line.range(of: " = ") ?? line.range(of: "= ") else {
                add(file, number, "\(line) sets nothing (expected NAME = value). Correct it.")
                continue
            }
            let full = String(line[..<equal.lowerBound])
            if !seen.insert(full).inserted { add(file, number, "\(full) is set twice. Remove one.") }
            setting(full, String(line[equal.upperBound...]), file, number)
        }
        return included
    }

    private mutating func settings(of configuration: Project.Object) {
        for entry in configuration.fields["buildSettings"]?.table ?? [] {
            let values = [entry.value.text].compactMap { $0 } + (entry.value.list ?? []).compactMap(\.text)
            setting(entry.key, values.joined(separator: " "), project.path, entry.line)
        }
    }

    private mutating func setting(_ full: String, _ value: String, _ file: String, _ line: Int) {
        let name = String(full.prefix { $0 != "[" })
        if let complaint = BuildSetting.complaint(name, value) { add(file, line, complaint) }
        condition(String(full.dropFirst(name.count)), file, line)
        for part in value.components(separatedBy: "$(").dropFirst() {
            let used = String(part.prefix { $0.isLetter || $0.isNumber || $0 == "_" })
            let isKnown = BuildSetting.xcode.contains(used) || BuildSetting.known[used] != nil || defined.contains(used)
            if !isKnown { add(file, line, "$(\(used)) is defined nowhere. Correct the spelling, or define it.") }
        }
        for part in value.components(separatedBy: "$(SRCROOT)").dropFirst() {
            let path = Files.clean(project.folder + part.prefix { !" \"".contains($0) })
            let isThere =
                files.isFile(path) || files.isFolder(path) || submodules.contains { "\(path)/".hasPrefix($0 + "/") }
            if !isThere { add(file, line, "\(name) names \(path), which is not there. Correct the path.") }
        }
    }

    /// `[config=Debug]` or `[sdk=macosx*]`.
    private mutating func condition(_ text: String, _ file: String, _ line: Int) {
        if text.isEmpty { return }
        let parts = text.trimmingCharacters(in: .init(charactersIn: "[]")).split(separator: "=").map(String.init)
        switch (parts.first, parts.count) {
        case ("config", 2) where project.configurations.contains(parts[1]): return
        case ("sdk", 2) where ["macosx*", "iphone*", "iphoneos*", "iphonesimulator*"].contains(parts[1]): return
        default: add(file, line, "\(text) is no condition (expected a configuration or an SDK). Correct it.")
        }
    }
}
