/// In the package the C API is a module of its own; in the framework it is part of the one module. Swift files import
/// it in the package alone.
struct ImportCheck {
    private static let module = "MLXNativeKernelsCore"

    static func findings(_ membership: Membership, _ files: Files) -> [Finding] {
        let sources = membership.targets.flatMap(\.compiled).filter { $0.hasSuffix(".swift") }
        return sources.flatMap { path in
            files.imports(path).filter { $0.module == module && $0.before != "#if SWIFT_PACKAGE" }.map {
                let message = "\(module) is no module in the framework. Import it under #if SWIFT_PACKAGE."
                return Finding(path, line: $0.line, message)
            }
        }
    }
}
