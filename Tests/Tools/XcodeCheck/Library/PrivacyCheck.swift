import Foundation

/// Checks the product's property lists, above all the privacy manifest: it must give a reason for each call for which
/// Apple requires one, and for no other.
struct PrivacyCheck {
    /// Calls by Apple's category.
    private static let categories: [(name: String, calls: [String])] = [
        ("FileTimestamp", ["stat(", "fstat(", "lstat(", "fstatat(", "getattrlist(", "filesystem::last_write_time("]),
        ("SystemBootTime", ["mach_absolute_time(", "systemUptime"]),
        ("DiskSpace", ["statfs(", "statvfs(", "fstatfs(", "fstatvfs(", "filesystem::space("]),
        ("UserDefaults", ["UserDefaults"]),
    ]
    private static let start = "NSPrivacyAccessedAPICategory"

    static func findings(_ project: Project, _ paths: Paths, _ membership: Membership, _ files: Files) -> [Finding] {
        let folders = project.targets.flatMap { project.objects($0, "fileSystemSynchronizedGroups") }
        let all = Set(folders.compactMap { paths.byID[$0.id] }).flatMap { folder in
            files.below(folder).map { "\(folder)/\($0)" }
        }
        var findings: [Finding] = []
        for file in all where ["plist", "entitlements"].contains(Files.kind(of: file)) {
            if table(files.text(file) ?? "") == nil {
                findings.append(Finding(file, "this is no property list. Correct it."))
            }
        }
        let manifests = all.filter { $0.hasSuffix("/PrivacyInfo.xcprivacy") }
        guard manifests.count == 1, let file = manifests.first else {
            return findings + [
                Finding(project.path, "there are \(manifests.count) privacy manifests (expected 1). Correct that.")
            ]
        }
        return findings + manifest(file, membership, files)
    }

    private static func table(_ text: String) -> [String: Any]? {
        (try? PropertyListSerialization.propertyList(from: Data(text.utf8), options: [], format: nil)) as? [String: Any]
    }

    private static func manifest(_ file: String, _ membership: Membership, _ files: Files) -> [Finding] {
        guard let manifest = table(files.text(file) ?? "") else {
            return [Finding(file, "this is no property list. Correct it.")]
        }
        var findings: [Finding] = []
        if manifest["NSPrivacyTracking"] as? Bool != false {
            findings.append(Finding(file, "NSPrivacyTracking is not false. Set it."))
        }
        var declared = Set<String>()
        for entry in manifest["NSPrivacyAccessedAPITypes"] as? [[String: Any]] ?? [] {
            let category = entry["NSPrivacyAccessedAPIType"] as? String ?? "nothing"
            declared.insert(category)
            if (entry["NSPrivacyAccessedAPITypeReasons"] as? [String] ?? []).isEmpty {
                findings.append(Finding(file, "\(category) has no reason. Add one."))
            }
        }
        let library = membership.targets.filter(\.isLibrary).flatMap { $0.compiled.union($0.headers) }
        var used = Set<String>()
        // Embedded text is not a call, and a .metal file cannot make one.
        for path in library.sorted() where !path.hasSuffix(".metal") {
            let text = files.text(path) ?? ""
            for category in categories where category.calls.contains(where: { calls($0, text) }) {
                if used.insert(start + category.name).inserted, !declared.contains(start + category.name) {
                    findings.append(
                        Finding(path, "a call needs a reason of \(start)\(category.name). Add it to \(file)."))
                }
            }
        }
        for category in declared.subtracting(used).sorted() {
            findings.append(Finding(file, "\(category) is declared, and no call needs it. Remove it."))
        }
        return findings
    }

    /// Whether the text contains the name as a whole word.
    private static func calls(_ name: String, _ text: String) -> Bool {
        text.withCString { start in
            var rest = start
            while let found = strstr(rest, name) {
                let before = found > start ? Character(UnicodeScalar(UInt8(bitPattern: found[-1]))) : " "
                if !before.isLetter && !before.isNumber && before != "_" { return true }
                rest = UnsafePointer(found) + 1
            }
            return false
        }
    }
}
