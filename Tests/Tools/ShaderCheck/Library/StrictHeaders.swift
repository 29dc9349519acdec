import Foundation

/// The generated headers of the strict compile: the functions of the list, the swizzles, and Metal's header names. They
/// are in a temporary folder that lives as long as this object.
final class StrictHeaders: Sendable {
    /// Declares the library for the strict compile.
    let declarations: String
    /// Metal's header names as empty files, for the lint, which reads only the kernel source.
    let empty: String
    private let folder: URL

    static let metalHeaders = [
        "metal_stdlib", "metal_math", "metal_common", "metal_integer", "metal_relational", "metal_geometric",
        "metal_simdgroup", "metal_simdgroup_matrix", "metal_atomic", "metal_compute",
    ]

    init(list: FunctionList) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("shader-check-\(UUID().uuidString)")
        let declarations = folder.appendingPathComponent("declarations")
        let empty = folder.appendingPathComponent("empty")
        self.declarations = declarations.path
        self.empty = empty.path
        for directory in [declarations, empty] {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        }
        func write(_ text: String, _ directory: URL, _ name: String) throws {
            try text.write(to: directory.appendingPathComponent(name), atomically: false, encoding: .utf8)
        }
        try write(Self.swizzles, declarations, "Swizzles.h")
        try write(list.header, declarations, "Functions.h")
        let includes = ["Swizzles.h", "Vectors.h", "SimdgroupMatrix.h", "Functions.h"].map { "#include \"\($0)\"\n" }
            .joined()
        for name in Self.metalHeaders {
            try write("#pragma once\n" + includes, declarations, name)
            try write("#pragma once\n", empty, name)
        }
        let words = [
            "threadgroup_array", "threadgroup_memory", "pipeline_constant", "instantiate_kernel", "export_kernel",
        ]
        try write(words.map { "#undef \($0)\n" }.joined(), empty, "KeepWords.h")
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// `STRICT_SWIZZLES_2` to `_4`: members such as `Swizzle<vec<T, 2>, true> xy;`.
    static var swizzles: String {
        (2...4).map { count in
            let members = ["xyzw", "rgba"].flatMap { letters in
                (2...4).flatMap { length in
                    choices(Array(letters.prefix(count)), length).map { name in
                        "Swizzle<vec<T, \(length)>, \(Set(name).count == length)> \(name);"
                    }
                }
            }
            return "#define STRICT_SWIZZLES_\(count) \(members.joined(separator: " "))\n"
        }.joined()
    }

    private static func choices(_ letters: [Character], _ length: Int) -> [String] {
        if length == 0 { return [""] }
        return choices(letters, length - 1).flatMap { start in letters.map { start + String($0) } }
    }
}
