import Foundation

/// The repository as a checker sees it. A test seeds faults in memory, by replacing the texts of single files.
public struct Files: Sendable {
    private let disk: Disk
    /// Texts that replace files on disk, by path from the root; nil: no file.
    private let seeded: [String: String?]

    /// The default is the repository that this file was compiled from.
    public init(root: String? = nil) {
        let here = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        disk = Disk(root: root ?? (0..<5).reduce(here) { url, _ in url.deletingLastPathComponent() }.path)
        seeded = [:]
    }

    private init(_ disk: Disk, _ seeded: [String: String?]) {
        self.disk = disk
        self.seeded = seeded
    }

    /// The same repository with other texts.
    public func seeding(_ texts: [String: String?]) -> Files { Files(disk, seeded.merging(texts) { $1 }) }

    /// Removes `.` and `..`. A path that leaves the repository keeps its leading `..`, and matches nothing in it.
    static func clean(_ path: String) -> String {
        var parts: [Substring] = []
        for part in path.split(separator: "/") where part != "." {
            if part == "..", let last = parts.last, last != ".." { parts.removeLast() } else { parts.append(part) }
        }
        return parts.joined(separator: "/")
    }

    /// The path extension.
    static func kind(of path: String) -> String {
        path.utf8.lastIndex(of: UInt8(ascii: ".")).map { String(path[$0...].dropFirst()) } ?? ""
    }

    public func text(_ path: String) -> String? {
        if let seeded = seeded[path] { return seeded }
        return disk.text(path)
    }

    /// The imports at the top of a Swift file.
    func imports(_ path: String) -> [Import] {
        if let seeded = seeded[path] { return Import.read(seeded ?? "") }
        return disk.imports(path)
    }

    func isFile(_ path: String) -> Bool {
        if let seeded = seeded[path] { return seeded != nil }
        return disk.isFolder(path) == false
    }

    func isFolder(_ path: String) -> Bool { disk.isFolder(path) == true }

    /// What Xcode finds in a folder, by relative path: including hidden files, and bundles without contents.
    func below(_ folder: String) -> [String] {
        var found = Set(disk.below(folder))
        for (path, text) in seeded where path.hasPrefix(folder + "/") {
            let relative = String(path.dropFirst(folder.count + 1))
            if text == nil { found.remove(relative) } else { found.insert(relative) }
        }
        return found.sorted()
    }
}

/// A line of a Swift file that imports a module.
struct Import: Sendable {
    let module: String
    let line: Int
    /// The text of the last line before it that is not empty.
    let before: String

    static func read(_ text: String) -> [Import] {
        var before = ""
        let lines = text.split(separator: "\n", maxSplits: 24, omittingEmptySubsequences: false)
        return lines.enumerated().compactMap { index, line in
            let words = line.split(separator: " ")
            defer { if !words.isEmpty { before = words.joined(separator: " ") } }
            guard words.dropLast().last == "import", let module = words.last else { return nil }
            return Import(module: String(module), line: index + 1, before: before)
        }
    }
}

/// Caches what it reads: tests check the repository a hundred times.
private final class Disk: @unchecked Sendable {
    private let root: String
    private let lock = NSLock()
    private var texts: [String: String?] = [:]
    private var imports: [String: [Import]] = [:]
    private var folders: [String: [String]] = [:]

    init(root: String) { self.root = root }

    func text(_ path: String) -> String? {
        lock.withLock {
            if let text = texts[path] { return text }
            let data = FileManager.default.contents(atPath: "\(root)/\(path)")
            let text = data.map { String(decoding: $0, as: UTF8.self) }
            texts[path] = text
            return text
        }
    }

    func imports(_ path: String) -> [Import] {
        if let found = lock.withLock({ imports[path] }) { return found }
        let found = Import.read(text(path) ?? "")
        lock.withLock { imports[path] = found }
        return found
    }

    /// Nil if nothing exists there.
    func isFolder(_ path: String) -> Bool? {
        var isFolder: ObjCBool = false
        return FileManager.default.fileExists(atPath: "\(root)/\(path)", isDirectory: &isFolder)
            ? isFolder.boolValue : nil
    }

    /// Folders that Xcode treats as one item.
    private static let bundles: Set<String> = ["docc", "xcassets", "bundle"]

    func below(_ folder: String) -> [String] {
        lock.withLock {
            if let found = folders[folder] { return found }
            var found: [String] = []
            let onDisk = FileManager.default.enumerator(atPath: "\(root)/\(folder)")
            while let path = onDisk?.nextObject() as? String {
                if path.hasSuffix(".DS_Store") { continue }
                if isFolder("\(folder)/\(path)") == true {
                    guard Self.bundles.contains(Files.kind(of: path)) else { continue }
                    onDisk?.skipDescendants()
                }
                found.append(path)
            }
            folders[folder] = found
            return found
        }
    }
}
