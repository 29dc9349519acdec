import Foundation

/// Checks whether the Host device's compile, which treats kernel source as C++20, accepts a source. It refuses much of
/// what the strict compile and the lint refuse, earlier and in every build.
public final class HostCompile: Sendable {
    private let clang: Clang
    private let folder: URL
    private let flags: [String]

    /// Precompiles the device's Metal library once for all sources.
    public init(layout: Layout = Layout(), clang: String? = nil) throws {
        self.clang = try Clang(path: clang)
        let host = "\(layout.root)/Sources/MLXNativeKernelsHost"
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("host-compile-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let header = folder.appendingPathComponent("MetalStdlib.h").path
        try """
        #define MNK_HOST_LIBRARY "seeded"
        #define MNK_HOST_LEVEL MNK_HOST_BASELINE
        #include "HostKernels.h"

        """.write(toFile: header, atomically: false, encoding: .utf8)
        let plain = ["-std=c++20", "-I", host]
        let pch = try self.clang.run(["-x", "c++-header"] + plain + [header, "-o", "\(header).pch"])
        guard pch.status == 0 else {
            throw Clang.Failure(description: "the Host device's Metal library does not compile: \(pch.standardError)")
        }
        flags = ["-x", "c++"] + plain + ["-fsyntax-only", "-include-pch", "\(header).pch"]
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// The result for each file.
    public func accepts(_ files: [String]) throws -> [Bool] { try concurrently(files, accepts) }

    private func accepts(_ file: String) throws -> Bool {
        let unit = folder.appendingPathComponent("\(UUID().uuidString).cpp").path
        try """
        MNK_HOST_KERNELS_BEGIN
        #include "\(URL(fileURLWithPath: file).path)"
        MNK_HOST_KERNELS_END

        """.write(toFile: unit, atomically: false, encoding: .utf8)
        return try clang.run(flags + [unit]).status == 0
    }
}
