import Foundation

/// Checks the test plans: one runs every test of the project; another, selected by name because it takes long, runs
/// them with Metal's validation and with each sanitizer.
struct TestPlanCheck {
    private let project: Project
    private let file: String
    private(set) var findings: [Finding] = []

    private typealias Table = [String: Any]
    private static let options: Set<String> = [
        "addressSanitizer", "environmentVariableEntries", "threadSanitizerEnabled", "undefinedBehaviorSanitizerEnabled",
    ]

    static func findings(_ project: Project, _ paths: Paths, _ files: Files) -> [Finding] {
        let plans = Set(paths.byID.values.filter { $0.hasSuffix(".xctestplan") }).sorted()
        if plans.isEmpty { return [Finding(project.path, "the project has no test plan. Add one.")] }
        return plans.flatMap { plan in
            var check = TestPlanCheck(project: project, file: plan)
            check.read(files.text(plan) ?? "")
            return check.findings
        }
    }

    private init(project: Project, file: String) {
        self.project = project
        self.file = file
    }

    private mutating func add(_ message: String) { findings.append(Finding(file, message)) }

    private mutating func read(_ text: String) {
        guard let plan = (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? Table else {
            return add("this is no JSON object. Correct it.")
        }
        if plan["version"] as? Int != 1 { add("version is not 1. Set it.") }
        configurations(plan["configurations"] as? [Table] ?? [])
        targets(plan["testTargets"] as? [Table] ?? [])
        if let options = plan["defaultOptions"] as? Table { known(options, "defaultOptions") }
    }

    private mutating func known(_ options: Table, _ name: String) {
        for key in options.keys.sorted() where !Self.options.contains(key) {
            add("\(name) has an option \(key), which is not known here. Correct the spelling, or teach it.")
        }
    }

    private mutating func configurations(_ all: [Table]) {
        let names = all.map { $0["name"] as? String ?? "" }
        let isOfChecks = file.hasSuffix("/Checks.xctestplan")
        let expected = isOfChecks ? ["Validation", "Address Sanitizer", "Thread Sanitizer"] : ["Default"]
        if names != expected { add("the configurations are \(names) (expected \(expected)). Correct them.") }
        let ids = Set(all.compactMap { ($0["id"] as? String).flatMap(UUID.init) })
        if ids.count != all.count { add("an id of a configuration is no UUID, or is used twice. Give each its own.") }
        for configuration in all {
            let name = configuration["name"] as? String ?? ""
            let options = configuration["options"] as? Table ?? [:]
            known(options, name)
            switch name {
            case "Validation": validation(options)
            case "Address Sanitizer":
                let isOn = (options["addressSanitizer"] as? Table)?["enabled"] as? Bool
                if isOn != true { add("\(name) does not turn addressSanitizer on. Set enabled.") }
            case "Thread Sanitizer":
                if options["threadSanitizerEnabled"] as? Bool != true { add("\(name) is not turned on. Set it.") }
            default: break
            }
        }
    }

    private mutating func validation(_ options: Table) {
        let entries = options["environmentVariableEntries"] as? [Table] ?? []
        for variable in ["MTL_DEBUG_LAYER", "MTL_SHADER_VALIDATION"] {
            let isOn = entries.contains { $0["key"] as? String == variable && $0["value"] as? String == "1" }
            if !isOn { add("Validation does not set \(variable) to 1. Add it.") }
        }
    }

    private mutating func targets(_ all: [Table]) {
        var missing = Set(project.targets.filter(project.isTest).map(\.id))
        for target in all.map({ $0["target"] as? Table ?? [:] }) {
            let id = target["identifier"] as? String ?? ""
            guard missing.remove(id) != nil, let object = project.objects[id] else {
                add("testTargets names \(id), which is no test target, or is named twice. Correct it.")
                continue
            }
            let expected = [("name", object.text("name") ?? ""), ("containerPath", project.container)]
            for (key, value) in expected where target[key] as? String != value {
                add("\(key) of \(id) is \(target[key] ?? "not set") (expected \(value)). Correct it.")
            }
        }
        for id in missing.sorted() { add("no test of \(project.objects[id]?.text("name") ?? id) is run. Add it.") }
    }
}
