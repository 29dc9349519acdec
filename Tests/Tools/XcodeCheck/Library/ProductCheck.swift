import Foundation

/// Checks that a target links what it imports, and that an app embeds what it links and what its libraries read.
struct ProductCheck {
    private static let kinds = (
        framework: "com.apple.product-type.framework", library: "com.apple.product-type.library.static",
        app: "com.apple.product-type.application"
    )
    /// The destination of a copy phase.
    private static let frameworksFolder = "10"
    private static let sandbox = "com.apple.security.app-sandbox"

    private let project: Project
    private let paths: Paths
    private let files: Files
    private var findings: [Finding] = []

    static func findings(
        _ project: Project, _ paths: Paths, _ membership: Membership, _ files: Files
    ) -> [Finding] {
        var check = ProductCheck(project: project, paths: paths, files: files)
        check.buildFiles()
        for (object, target) in zip(project.targets, membership.targets) {
            check.imports(of: object, target)
            check.links(of: object)
            if object.text("productType") == kinds.app { check.embeds(object) }
        }
        check.entitlements()
        return check.findings
    }

    private init(project: Project, paths: Paths, files: Files) {
        self.project = project
        self.paths = paths
        self.files = files
    }

    private mutating func add(_ line: Int, _ message: String) {
        findings.append(Finding(project.path, line: line, message))
    }

    private func name(_ target: Project.Object) -> String { target.text("name") ?? target.id }

    /// The files in a target's phases of a class, each with its entry in the phase.
    private func files(
        of target: Project.Object, _ isa: String, where isMeant: (Project.Object) -> Bool = { _ in true }
    ) -> [(entry: Project.Object, id: String)] {
        project.objects(target, "buildPhases").filter { $0.isa == isa && isMeant($0) }
            .flatMap { project.objects($0, "files") }
            .compactMap { entry in entry.text("fileRef").map { (entry, $0) } }
    }

    /// Targets whose products are linked.
    private func linked(by target: Project.Object) -> [Project.Object] {
        let products = Set(files(of: target, "PBXFrameworksBuildPhase").map(\.id))
        return project.targets.filter { products.contains($0.text("productReference") ?? "") }
    }

    private func needed(by target: Project.Object) -> [Project.Object] {
        project.objects(target, "dependencies").flatMap { project.objects($0, "target") }
    }

    private mutating func buildFiles() {
        var phases: [String: Int] = [:]
        for phase in ObjectRule.phases.flatMap({ project.all($0) }) {
            for (id, line) in phase.texts("files") where phases.updateValue(line, forKey: id) != nil {
                add(line, "\(id) is in two phases. Give one an entry of its own.")
            }
        }
    }

    private mutating func imports(of object: Project.Object, _ target: Membership.Target) {
        let isLibrary = object.text("productType") == Self.kinds.library
        // A static library does not link, but what it imports must be built before it.
        let reached = isLibrary ? needed(by: object) : linked(by: object)
        let modules = project.targets.filter {
            [Self.kinds.framework, Self.kinds.library].contains($0.text("productType")) && $0.id != object.id
        }
        for path in target.compiled.filter({ $0.hasSuffix(".swift") }).sorted() {
            for imported in files.imports(path) {
                guard let module = modules.first(where: { name($0) == imported.module }),
                    !reached.contains(where: { $0.id == module.id })
                else { continue }
                let verb = isLibrary ? "depend on" : "link"
                let message = "\(target.name) does not \(verb) \(name(module)), which is imported here. Add it there."
                findings.append(Finding(path, line: imported.line, message))
            }
        }
    }

    private mutating func links(of target: Project.Object) {
        let linked = linked(by: target)
        let needed = Set(needed(by: target).map(\.id))
        for other in linked where !needed.contains(other.id) {
            add(target.line, "\(name(target)) links \(name(other)), and does not depend on it. Add the dependency.")
        }
        for library in linked where library.text("productType") == Self.kinds.library {
            for other in self.needed(by: library) where !linked.contains(where: { $0.id == other.id }) {
                let message = "\(name(target)) links \(name(library)), but not \(name(other)), which that one uses"
                add(target.line, "\(message). Link it.")
            }
            let copied = ["PBXResourcesBuildPhase", "PBXCopyFilesBuildPhase"].flatMap { files(of: target, $0) }
            let manifest = Manifest(files.text(Manifest.path) ?? "")
            for folder in manifest.resources(of: name(library), "copy")
            where !copied.contains(where: { paths.byID[$0.id] == folder }) {
                add(target.line, "\(name(target)) does not copy \(folder), which \(name(library)) reads. Add it.")
            }
        }
    }

    private mutating func embeds(_ target: Project.Object) {
        let embedded = files(of: target, "PBXCopyFilesBuildPhase") {
            $0.text("dstSubfolderSpec") == Self.frameworksFolder
        }
        for framework in linked(by: target) where framework.text("productType") == Self.kinds.framework {
            let product = framework.text("productReference")
            guard let found = embedded.first(where: { $0.id == product }) else {
                add(target.line, "\(name(target)) does not embed \(name(framework)), which it links. Embed it.")
                continue
            }
            let attributes = found.entry.fields["settings"]?["ATTRIBUTES"]?.list ?? []
            if !attributes.contains(where: { $0.text == "CodeSignOnCopy" }) {
                add(found.entry.line, "\(name(framework)) is embedded, and not signed. Add CodeSignOnCopy.")
            }
        }
    }

    private mutating func entitlements() {
        for path in paths.byID.values.filter({ Files.kind(of: $0) == "entitlements" && files.isFile($0) }).sorted() {
            let data = Data((files.text(path) ?? "").utf8)
            let table = try? PropertyListSerialization.propertyList(from: data, options: [], format: nil)
            if (table as? [String: Any])?[Self.sandbox] as? Bool != true {
                findings.append(Finding(path, "\(Self.sandbox) is not true. Set it."))
            }
        }
    }
}
