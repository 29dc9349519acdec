import Foundation

/// The locations of files, and how paths are shown.
public struct Layout: Sendable {
    /// The repository.
    public let root: String

    /// The default is the repository that this file was compiled from.
    public init(root: String? = nil) {
        let here = URL(fileURLWithPath: #filePath)
        self.root = root ?? (0..<5).reduce(here) { url, _ in url.deletingLastPathComponent() }.path
    }

    var folder: String { "\(root)/Tests/Tools/ShaderCheck" }
    var headers: String { "\(folder)/Headers" }
    var metalCompat: String { "\(root)/Shaders/Common/MetalCompat.h" }
    public var functions: String { "\(folder)/functions.tsv" }
    public var testFunctions: String { "\(folder)/test-functions.tsv" }
    public var rejected: String { "\(folder)/Rejected" }
    public var accepted: String { "\(folder)/Accepted" }

    /// Without `..`, and relative to the repository if inside it.
    public func shown(_ path: String) -> String {
        var parts: [Substring] = []
        for part in path.split(separator: "/", omittingEmptySubsequences: false) where part != "." {
            if part == "..", let last = parts.last, last != "..", !last.isEmpty {
                parts.removeLast()
            } else {
                parts.append(part)
            }
        }
        let clean = parts.joined(separator: "/")
        return clean.hasPrefix(root + "/") ? String(clean.dropFirst(root.count + 1)) : clean
    }
}
