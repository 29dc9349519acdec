/// The targets of Package.swift, as far as its text shows.
struct Manifest {
    static let path = "Package.swift"

    private let text: String

    init(_ text: String) { self.text = text }

    /// From a target's name to the next target.
    private func description(of target: String) -> Substring {
        guard let name = text.firstRange(of: "name: \"\(target)\"") else { return "" }
        let rest = text[name.upperBound...]
        return rest[..<(rest.firstRange(of: "arget(")?.lowerBound ?? rest.endIndex)]
    }

    private func quoted(_ text: Substring) -> [String] {
        text.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
            .filter { !$0.offset.isMultiple(of: 2) }.map { String($0.element) }
    }

    /// The rest of the line after a key of a target.
    private func line(_ key: String, of target: String) -> Substring? {
        let description = description(of: target)
        return description.firstRange(of: "\(key): ").map { description[$0.upperBound...].prefix { $0 != "\n" } }
    }

    func folder(of target: String) -> String {
        line("path", of: target).flatMap { quoted($0).first } ?? "Sources/\(target)"
    }

    /// What a target compiles on any system, by path relative to its folder. Settings follow its sources.
    func sources(of target: String) -> [String] {
        let description = description(of: target)
        guard let start = description.firstRange(of: "sources: ") else { return [] }
        let rest = description[start.upperBound...]
        let ends = [rest.firstRange(of: "cxxSettings"), rest.firstRange(of: "publicHeadersPath")]
        return quoted(rest[..<(ends.compactMap { $0?.lowerBound }.min() ?? rest.endIndex)])
    }

    /// Resources of a target that are copied or processed, by path from the repository.
    func resources(of target: String, _ rule: String) -> [String] {
        let folder = folder(of: target)
        return String(description(of: target)).components(separatedBy: ".\(rule)(\"").dropFirst().map { part in
            Files.clean("\(folder)/\(part.prefix { $0 != "\"" })")
        }
    }
}
