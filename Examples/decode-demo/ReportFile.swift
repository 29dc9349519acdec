import Foundation
import JargonLM

/// The file of a report: a new one, or an existing plain file that is overwritten in place and keeps its mode.
struct ReportFile {
    let name: String
    /// The name with all links resolved.
    private let path: String

    /// Collecting a report takes a minute, so this first checks that the file can be written.
    init(_ name: String) throws(ModelError) {
        guard let path = Self.target(of: name) else { throw Self.refusal(name) }
        var info = stat()
        if stat(path, &info) == 0 {
            guard Self.isPlain(info), access(path, W_OK) == 0 else { throw Self.refusal(name) }
        } else {
            guard errno == ENOENT, access(Self.folder(of: path), W_OK) == 0 else { throw Self.refusal(name) }
        }
        self.name = name
        self.path = path
    }

    func write(_ text: String) throws(ModelError) {
        // The file may have been replaced meanwhile, so this checks it again before truncating it.
        let descriptor = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw Self.refusal(name) }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var info = stat()
        guard fstat(descriptor, &info) == 0, Self.isPlain(info) else { throw Self.refusal(name) }
        do {
            try handle.truncate(atOffset: 0)
            try handle.write(contentsOf: Data(text.utf8))
            try handle.close()
        } catch {
            throw Self.refusal("\(name): \(error.localizedDescription)")
        }
    }

    /// Follows links, including one to a file that does not exist yet; `nil` if the name cannot be a file.
    private static func target(of name: String) -> String? {
        var path = name
        for _ in 0..<40 {
            guard !path.isEmpty, !path.hasSuffix("/") else { return nil }
            guard let next = try? FileManager.default.destinationOfSymbolicLink(atPath: path) else { return path }
            path = next.hasPrefix("/") ? next : "\(folder(of: path))/\(next)"
        }
        return nil
    }

    private static func folder(of path: String) -> String {
        guard let end = path.lastIndex(of: "/") else { return "." }
        return end == path.startIndex ? "/" : String(path[..<end])
    }

    private static func isPlain(_ info: stat) -> Bool { info.st_mode & S_IFMT == S_IFREG }

    private static func refusal(_ got: String) -> ModelError {
        ModelError(
            code: .invalidArgument, what: "the report cannot be written", got: got,
            expected: "a writable plain file, or a new file in a writable folder",
            fix: "Pass another file with --report.")
    }
}
