/// In the package, the C API is a separate module; in the framework, it is part of the one module. So Swift files
/// import it only in the package.
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
