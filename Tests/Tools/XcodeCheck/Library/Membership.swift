import Foundation

/// What each target compiles, copies and publishes, by Xcode's rules: its folders minus the exceptions.
struct Membership {
    struct Target {
        let name: String
        let line: Int
        /// Paths from the repository.
        var compiled: Set<String> = []
        var headers: Set<String> = []
        var publicHeaders: Set<String> = []
        var isFramework = false
        /// Whether it is part of the library: the framework or the Host device.
        var isLibrary: Bool { compiled.contains { $0.hasPrefix("Sources/") } }
    }

    static let compiled: Set<String> = ["c", "m", "mm", "cpp", "swift", "metal"]
    static let headers: Set<String> = ["h", "hpp"]
    /// Resources that a product may have.
    private static let resources: Set<String> = ["docc", "xcprivacy", "xcassets"]

    private let project: Project
    private let paths: Paths
    private let files: Files
    private(set) var targets: [Target] = []
    private(set) var findings: [Finding] = []

    init(_ project: Project, _ paths: Paths, _ files: Files) {
        self.project = project
        self.paths = paths
        self.files = files
        for group in project.all("PBXFileSystemSynchronizedRootGroup") { exceptions(of: group) }
        targets = project.targets.map { members(of: $0) }
    }

    private mutating func add(_ line: Int, _ message: String) {
        findings.append(Finding(project.path, line: line, message))
    }

    private mutating func exceptions(of group: Project.Object) {
        guard let folder = paths.byID[group.id] else { return }
        let found = Set(files.below(folder))
        for set in project.objects(group, "exceptions") {
            let owner = project.objects(set, "target").first
            if let owner, !owner.texts("fileSystemSynchronizedGroups").contains(where: { $0.text == group.id }) {
                let name = owner.text("name") ?? owner.id
                add(
                    set.line,
                    "\(set.id) excepts files of \(folder) from \(name), which does not have that folder. Correct it.")
            }
            var seen = Set<String>()
            for key in ["membershipExceptions", "publicHeaders", "privateHeaders"] {
                for (path, line) in set.texts(key) {
                    if !found.contains(path) {
                        add(line, "\(key): there is no file \(folder)/\(path). Remove the line.")
                    }
                    if !seen.insert(path).inserted { add(line, "\(path) is named twice. Remove one.") }
                }
            }
        }
    }

    private mutating func members(of object: Project.Object) -> Target {
        var target = Target(name: object.text("name") ?? object.id, line: object.line)
        target.isFramework = object.text("productType") == "com.apple.product-type.framework"
        for group in project.objects(object, "fileSystemSynchronizedGroups") {
            guard let folder = paths.byID[group.id] else { continue }
            let sets = project.objects(group, "exceptions").filter { $0.text("target") == object.id }
            let excepted = Set(sets.flatMap { $0.texts("membershipExceptions") }.map(\.text))
            target.publicHeaders.formUnion(sets.flatMap { $0.texts("publicHeaders") }.map { "\(folder)/\($0.text)" })
            for path in files.below(folder) where !excepted.contains(path) {
                let kind = Files.kind(of: path)
                if Self.compiled.contains(kind) {
                    target.compiled.insert("\(folder)/\(path)")
                } else if Self.headers.contains(kind) {
                    target.headers.insert("\(folder)/\(path)")
                } else if !Self.resources.contains(kind) {
                    let message = "\(folder)/\(path) would be copied into \(target.name) as a resource"
                    add(group.line, "\(message). Add it to membershipExceptions.")
                }
            }
        }
        unique(target)
        if target.isFramework { published(target) }
        return target
    }

    private mutating func unique(_ target: Target) {
        let swift = Dictionary(grouping: target.compiled.filter { $0.hasSuffix(".swift") }) { fileName($0) }
        for (name, paths) in swift where paths.count > 1 {
            add(target.line, "\(target.name) has \(paths.count) files called \(name), which Swift refuses. Rename one.")
        }
    }

    /// Headers in a folder `include` must be public, and no others.
    private mutating func published(_ target: Target) {
        let meant = target.headers.filter { $0.contains("/include/") }
        for path in meant.subtracting(target.publicHeaders).sorted() {
            add(target.line, "\(path) is not among the publicHeaders of \(target.name). Add it.")
        }
        for path in target.publicHeaders.subtracting(meant).sorted() {
            add(target.line, "\(path) is a public header of \(target.name), but lies in no folder include. Remove it.")
        }
        let names = Dictionary(grouping: target.publicHeaders) { fileName($0) }
        for (name, paths) in names where paths.count > 1 {
            add(target.line, "\(paths.count) public headers are called \(name), and all lie in one folder. Rename one.")
        }
    }

    private func fileName(_ path: String) -> String { (path as NSString).lastPathComponent }
}
