/// An Xcode project as objects. Each error in the text is a finding, and the rest is still read.
struct Project {
    struct Object {
        let id: String
        let line: Int
        let isa: String
        let fields: Value

        func text(_ key: String) -> String? { fields[key]?.text }
        /// Texts of a list, with their lines.
        func texts(_ key: String) -> [(text: String, line: Int)] {
            (fields[key]?.list ?? []).compactMap { value in value.text.map { ($0, value.line) } }
        }
    }

    /// By path from the repository.
    let path: String
    private(set) var objects: [String: Object] = [:]
    private(set) var root: String?
    private(set) var findings: [Finding] = []

    /// The folder that the project's paths are relative to.
    var folder: String { Files.clean("\(path)/../..") }
    /// Its name in schemes and test plans.
    var container: String { "container:" + (path.split(separator: "/").dropLast().last.map(String.init) ?? "") }

    init(_ text: String, path: String) {
        self.path = path
        do throws(PropertyListText.Mistake) {
            read(try PropertyListText.read(text))
        } catch {
            findings.append(Finding(path, line: error.line, error.message))
        }
    }

    private mutating func add(_ line: Int, _ message: String) {
        findings.append(Finding(path, line: line, message))
    }

    private mutating func read(_ value: Value) {
        let version = value["objectVersion"]
        if version?.text != "77" {
            add(version?.line ?? 1, "objectVersion is \(version?.text ?? "not set") (expected 77, Xcode 16). Set it.")
        }
        guard let table = value["objects"]?.table else { return add(1, "the project has no table of objects. Add it.") }
        for entry in table {
            let id = entry.key
            if id.count != 24 || !id.allSatisfy(\.isHexDigit) {
                add(entry.line, "\(id) is no identifier (expected 24 hexadecimal digits). Correct it.")
            }
            if let first = objects[id] {
                add(entry.line, "\(id) is defined twice, first in line \(first.line). Give one another identifier.")
            }
            guard let isa = entry.value["isa"]?.text else {
                add(entry.line, "\(id) has no isa. Add its class.")
                continue
            }
            objects[id] = Object(id: id, line: entry.line, isa: isa, fields: entry.value)
        }
        let name = value["rootObject"]
        guard let id = name?.text, objects[id]?.isa == "PBXProject" else {
            return add(name?.line ?? 1, "rootObject names no PBXProject (got \(name?.text ?? "nothing")). Correct it.")
        }
        root = id
    }

    func all(_ isa: String) -> [Object] { objects.values.filter { $0.isa == isa }.sorted { $0.line < $1.line } }

    func object(_ id: String?, _ isa: String) -> Object? {
        id.flatMap { objects[$0] }.flatMap { $0.isa == isa ? $0 : nil }
    }

    /// The objects that a key of another one names.
    func objects(_ owner: Object, _ key: String) -> [Object] {
        if let one = owner.text(key) { return objects[one].map { [$0] } ?? [] }
        return owner.texts(key).compactMap { objects[$0.text] }
    }

    var targets: [Object] {
        root.flatMap { objects[$0] }.map { objects($0, "targets").filter { $0.isa == "PBXNativeTarget" } } ?? []
    }

    func target(named name: String) -> Object? { targets.first { $0.text("name") == name } }

    func product(of target: Object) -> String? { objects(target, "productReference").first?.text("path") }

    func isTest(_ target: Object) -> Bool { target.text("productType") == "com.apple.product-type.bundle.unit-test" }

    /// Names of the project's configurations.
    var configurations: [String] {
        guard let project = root.flatMap({ objects[$0] }),
            let list = objects(project, "buildConfigurationList").first
        else { return [] }
        return objects(list, "buildConfigurations").compactMap { $0.text("name") }
    }
}
