import Foundation

/// Runs clang and parses its output.
struct Clang: Sendable {
    struct Note {
        let file: String
        let line: Int
        let message: String
    }

    struct Diagnostic {
        let severity: String
        let file: String
        let line: Int
        let message: String
        var notes: [Note] = []
    }

    struct Output {
        let standardOutput: String
        let standardError: String
        let status: Int32
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let path: String

    /// The Swift toolchain's clang comes first on PATH and has the C++-for-OpenCL mode, so nothing needs to be
    /// installed. If there is no program named clang, a distribution's versioned one is used.
    init(path requestedPath: String?) throws {
        let names = requestedPath.map { [$0] } ?? ["clang", "clang-21", "clang-20", "clang-19"]
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        let candidates = names.flatMap { name in name.contains("/") ? [name] : folders.map { "\($0)/\(name)" } }
        guard let found = candidates.first(where: FileManager.default.isExecutableFile(atPath:)) else {
            throw Failure(
                description: "no clang for the strict compile (got none of \(names.joined(separator: ", ")) on PATH, "
                    + "expected clang 19 or newer). Install one, or name it: --clang PATH.")
        }
        path = found
    }

    func run(_ arguments: [String]) throws -> Output {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        let (output, error) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = error
        process.standardInput = FileHandle.nullDevice
        try process.run()
        // Reads both pipes concurrently: a process that fills one while only the other is read would block forever.
        let collected = Collected()
        let reader = Thread { collected.set(error.fileHandleForReading.readDataToEndOfFile()) }
        reader.start()
        let standardOutput = output.fileHandleForReading.readDataToEndOfFile()
        let standardError = collected.wait()
        process.waitUntilExit()
        return Output(
            standardOutput: String(decoding: standardOutput, as: UTF8.self),
            standardError: String(decoding: standardError, as: UTF8.self), status: process.terminationStatus)
    }

    /// `file:line:column: error: message`, with the notes that follow each.
    static func diagnostics(in text: String) -> [Diagnostic] {
        var found: [Diagnostic] = []
        for line in text.split(separator: "\n") {
            guard let match = line.firstMatch(of: /^(.+?):(\d+):\d+: (note|warning|error|fatal error): (.*)$/) else {
                continue
            }
            let (file, number, message) = (String(match.1), Int(match.2) ?? 0, String(match.4))
            if match.3 == "note" {
                guard !found.isEmpty else { continue }
                found[found.count - 1].notes.append(Note(file: file, line: number, message: message))
            } else {
                found.append(Diagnostic(severity: String(match.3), file: file, line: number, message: message))
            }
        }
        return found
    }
}

private final class Collected: @unchecked Sendable {
    private let done = DispatchSemaphore(value: 0)
    private var data = Data()

    func set(_ data: Data) {
        self.data = data
        done.signal()
    }

    func wait() -> Data {
        done.wait()
        return data
    }
}
