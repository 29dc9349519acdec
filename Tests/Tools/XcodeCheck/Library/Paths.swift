/// The locations of a project's groups and files, by path from the repository.
struct Paths {
    private(set) var byID: [String: String] = [:]
    private(set) var findings: [Finding] = []

    init(_ project: Project, _ files: Files) {
        guard let root = project.root.flatMap({ project.objects[$0] }),
            let main = project.objects(root, "mainGroup").first
        else { return }
        var waiting = [(main, project.folder)]
        var seen = Set<String>()
        while let (node, parent) = waiting.popLast() {
            // A group that is its own descendant is reported as one with two parents.
            guard seen.insert(node.id).inserted else { continue }
            let base: String
            switch node.text("sourceTree") {
            case "<group>": base = parent
            case "SOURCE_ROOT": base = project.folder
            case "BUILT_PRODUCTS_DIR": continue
            case let other:
                let message =
                    "sourceTree is \(other ?? "not set") (expected <group>, SOURCE_ROOT or BUILT_PRODUCTS_DIR)"
                findings.append(Finding(project.path, line: node.line, "\(message). Correct it."))
                continue
            }
            let path = Files.clean("\(base)/\(node.text("path") ?? "")")
            byID[node.id] = path
            // A folder that is copied whole is a reference, too.
            let isFile = node.isa == "PBXFileReference" && node.text("lastKnownFileType") != "folder"
            if !(isFile ? files.isFile(path) : files.isFolder(path)) {
                let what = isFile ? "file" : "folder"
                findings.append(
                    Finding(project.path, line: node.line, "there is no \(what) \(path). Correct the path."))
            }
            if node.isa == "PBXGroup" { waiting += project.objects(node, "children").map { ($0, path) } }
        }
    }
}
