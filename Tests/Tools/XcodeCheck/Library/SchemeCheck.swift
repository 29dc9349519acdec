/// Shared schemes: what they build, run and test is in the project.
struct SchemeCheck {
    private let project: Project
    private let files: Files
    private let scheme: String
    private var findings: [Finding] = []

    static func findings(_ project: Project, _ files: Files) -> [Finding] {
        let folder = Files.clean("\(project.path)/../xcshareddata/xcschemes")
        let schemes = files.below(folder).filter { $0.hasSuffix(".xcscheme") }
        if schemes.isEmpty { return [Finding(folder, "there is no shared scheme. Add one.")] }
        return schemes.flatMap { name in
            var check = SchemeCheck(project: project, files: files, scheme: "\(folder)/\(name)")
            check.read()
            return check.findings
        }
    }

    private init(project: Project, files: Files, scheme: String) {
        self.project = project
        self.files = files
        self.scheme = scheme
    }

    private mutating func add(_ line: Int, _ message: String) {
        findings.append(Finding(scheme, line: line, message))
    }

    private mutating func read() {
        do throws(MarkupText.Mistake) {
            for element in try MarkupText.read(files.text(scheme) ?? "") { check(element) }
        } catch {
            add(error.line, "this is no XML: \(error.message)")
        }
    }

    private mutating func check(_ element: MarkupText.Element) {
        if let configuration = element.attributes["buildConfiguration"],
            !project.configurations.contains(configuration)
        {
            add(element.line, "there is no configuration \(configuration). Correct \(element.name).")
        }
        switch element.name {
        case "BuildableReference": reference(element)
        case "TestPlanReference":
            let reference = element.attributes["reference"] ?? ""
            let path = "\(project.folder)/\(reference.dropFirst("container:".count))"
            if !reference.hasPrefix("container:") || !files.isFile(path) {
                add(element.line, "there is no test plan \(reference). Correct it.")
            }
        default: break
        }
    }

    private mutating func reference(_ element: MarkupText.Element) {
        let id = element.attributes["BlueprintIdentifier"] ?? ""
        guard let target = project.targets.first(where: { $0.id == id }) else {
            return add(element.line, "BlueprintIdentifier \(id) is no target of the project. Correct it.")
        }
        let expected = [
            ("BlueprintName", target.text("name")), ("BuildableName", project.product(of: target)),
            ("ReferencedContainer", project.container),
        ]
        for (key, value) in expected where element.attributes[key] != value {
            let got = element.attributes[key] ?? "not set"
            add(element.line, "\(key) is \(got) (expected \(value ?? "nothing")). Correct it.")
        }
    }
}
