/// Every identifier names an object of the right class, every key is known, and every object is used.
struct ReferenceCheck {
    private let project: Project
    private var findings: [Finding] = []

    static func findings(_ project: Project) -> [Finding] {
        var check = ReferenceCheck(project: project)
        for object in project.objects.values { check.fields(of: object) }
        check.reach()
        check.groups()
        check.dependencies()
        check.configurations()
        return check.findings
    }

    private init(project: Project) { self.project = project }

    private mutating func add(_ line: Int, _ message: String) {
        findings.append(Finding(project.path, line: line, message))
    }

    private mutating func fields(of object: Project.Object) {
        guard let rule = ObjectRule.all[object.isa] else {
            return add(
                object.line, "\(object.id) is a \(object.isa), which is not known here. Correct it, or teach it.")
        }
        for key in rule.required.keys where object.fields[key] == nil {
            add(object.line, "\(object.id), a \(object.isa), lacks \(key). Add it.")
        }
        var seen = Set<String>()
        for entry in object.fields.table ?? [] where entry.key != "isa" {
            if !seen.insert(entry.key).inserted { add(entry.line, "\(entry.key) is set twice. Remove one.") }
            guard let kind = rule.kind(of: entry.key) else {
                add(entry.line, "a \(object.isa) has no \(entry.key). Correct the spelling.")
                continue
            }
            field(entry, kind)
        }
    }

    private mutating func field(_ entry: Value.Entry, _ kind: FieldKind) {
        let value = entry.value
        switch kind {
        case .text:
            if value.text == nil { add(entry.line, "\(entry.key) is no text. Write one.") }
        case .table:
            if value.table == nil { add(entry.line, "\(entry.key) is no table. Write { … }.") }
        case .texts:
            let isList = value.list?.allSatisfy { $0.text != nil } ?? false
            if !isList { add(entry.line, "\(entry.key) is no list of texts. Write ( … ).") }
        case .one(let classes): reference(value, entry.key, classes)
        case .many(let classes):
            guard let list = value.list else { return add(entry.line, "\(entry.key) is no list. Write ( … ).") }
            var seen = Set<String>()
            for item in list {
                reference(item, entry.key, classes)
                if let id = item.text, !seen.insert(id).inserted {
                    add(item.line, "\(entry.key) names \(id) twice. Remove one.")
                }
            }
        }
    }

    private mutating func reference(_ value: Value, _ key: String, _ classes: [String]) {
        guard let id = value.text else { return add(value.line, "\(key) is no identifier. Write one.") }
        let expected = classes.joined(separator: " or ")
        guard let named = project.objects[id] else {
            return add(value.line, "\(key) names \(id), which is not there (expected a \(expected)). Correct it.")
        }
        if !classes.contains(named.isa) {
            add(value.line, "\(key) names \(id), a \(named.isa) (expected a \(expected)). Correct it.")
        }
    }

    private mutating func reach() {
        var waiting = [project.root].compactMap { $0 }
        var reached = Set(waiting)
        while let object = waiting.popLast().flatMap({ project.objects[$0] }) {
            for entry in object.fields.table ?? [] {
                let named = [entry.value.text].compactMap { $0 } + (entry.value.list ?? []).compactMap(\.text)
                for id in named where project.objects[id] != nil && reached.insert(id).inserted { waiting.append(id) }
            }
        }
        for object in project.objects.values where !reached.contains(object.id) {
            add(object.line, "nothing leads to \(object.id), a \(object.isa). Use it, or remove it.")
        }
    }

    /// The navigator is a tree.
    private mutating func groups() {
        var parents: [String: Int] = [:]
        for group in project.all("PBXGroup") {
            for child in group.texts("children") {
                if let first = parents.updateValue(child.line, forKey: child.text) {
                    add(child.line, "\(child.text) is in a group already, see line \(first). Remove one.")
                }
            }
        }
        for isa in ["PBXFileReference", "PBXFileSystemSynchronizedRootGroup"] {
            for node in project.all(isa) where parents[node.id] == nil {
                add(node.line, "\(node.id), a \(isa), is in no group. Add it to one.")
            }
        }
    }

    private mutating func dependencies() {
        for dependency in project.all("PBXTargetDependency") {
            let proxy = project.objects(dependency, "targetProxy").first
            if proxy?.text("remoteGlobalIDString") != dependency.text("target") {
                add(dependency.line, "\(dependency.id) and its proxy name different targets. Correct one.")
            }
            let name = project.objects(dependency, "target").first?.text("name")
            if let proxy, let name, proxy.text("remoteInfo") != name {
                add(proxy.line, "remoteInfo is \(proxy.text("remoteInfo") ?? "not set") (expected \(name)). Set it.")
            }
        }
    }

    private mutating func configurations() {
        let expected = ["Debug", "Release"]
        for list in project.all("XCConfigurationList") {
            let names = project.objects(list, "buildConfigurations").compactMap { $0.text("name") }
            if names.sorted() != expected {
                add(list.line, "a target has the configurations \(names) (expected \(expected)). Correct the list.")
            }
            if let chosen = list.text("defaultConfigurationName"), !names.contains(chosen) {
                add(list.line, "defaultConfigurationName is \(chosen), one of \(names) is expected. Correct it.")
            }
        }
    }
}
