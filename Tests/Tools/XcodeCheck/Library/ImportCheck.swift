/// In the package the C door is a module of its own; in the framework it is part of the one module. Swift files import
/// it in the package alone.
struct ImportCheck {
    private static let module = "MLXNativeKernelsCore"

    static func findings(_ membership: Membership, _ files: Files) -> [Finding] {
        let sources = membership.targets.flatMap(\.compiled).filter { $0.hasSuffix(".swift") }
        return sources.flatMap { findings($0, files.text($0) ?? "") }
    }

    private static func findings(_ file: String, _ text: String) -> [Finding] {
        var before: [Substring] = []
        // What is imported stands at the top.
        return text.split(separator: "\n", maxSplits: 24).enumerated().compactMap { index, line in
            let words = line.split(separator: " ")
            defer { before = words }
            guard words.suffix(2) == ["import", module[...]], before != ["#if", "SWIFT_PACKAGE"] else { return nil }
            let message = "\(module) is no module in the framework. Import it under #if SWIFT_PACKAGE."
            return Finding(file, line: index + 1, message)
        }
    }
}
