/// Rules about kernels: their parameters and exported names.
extension Lint {
    /// Built-in values that may have several dimensions.
    static let positions: Set<String> = [
        "thread_position_in_grid", "thread_position_in_threadgroup", "threadgroup_position_in_grid",
        "threads_per_threadgroup", "dispatch_threads_per_threadgroup", "threadgroups_per_grid", "threads_per_grid",
    ]
    static let counts: Set<String> = [
        "thread_index_in_threadgroup", "thread_index_in_simdgroup", "thread_index_in_quadgroup",
        "simdgroup_index_in_threadgroup", "quadgroup_index_in_threadgroup", "simdgroups_per_threadgroup",
        "quadgroups_per_threadgroup", "dispatch_simdgroups_per_threadgroup", "threads_per_simdgroup",
        "thread_execution_width",
    ]

    mutating func checkKernels() {
        for kernel in source.functions where kernel.isKernel {
            if source.text(kernel.at - 1) != "void" {
                report(kernel.at, "kernel \(kernel.name) returns something other than void")
            }
            var bound: Set<String> = []
            for parameter in kernel.parameters { checkParameter(parameter, of: kernel, &bound) }
        }
    }

    private mutating func checkParameter(
        _ range: Range<Int>, of kernel: SourceText.Function, _ bound: inout Set<String>
    ) {
        guard let open = range.first(where: { source.text($0) == "[" && source.text($0 + 1) == "[" }) else {
            report(
                range.lowerBound,
                "\(kernel.name): parameter without an attribute: \(source.words(range).joined(separator: " "))")
            return
        }
        let declared = source.words(range.lowerBound..<open)
        for part in source.parts(open + 2..<max(source.close(open + 1), open + 2)) {
            let attribute = source.text(part.lowerBound)
            let isBinding = ["buffer", "threadgroup_memory"].contains(attribute)
            if isBinding, !bound.insert(source.words(part).joined()).inserted {
                report(part.lowerBound, "\(kernel.name): \(source.words(part).joined()) is bound twice")
            }
            let isPointer = declared.contains("*") || declared.contains("&")
            let hasSpace = declared.contains("device") || declared.contains("constant")
            if attribute == "buffer", !isPointer || !hasSpace {
                report(range.lowerBound, "\(kernel.name): a buffer is a device or constant pointer, or a reference")
            }
            let allowed =
                Self.positions.contains(attribute)
                ? ["uint", "uint2", "uint3", "ushort", "ushort2", "ushort3"]
                : Self.counts.contains(attribute) ? ["uint", "ushort"] : nil
            if let allowed, declared.count != 2 || !allowed.contains(declared[0]) {
                report(
                    range.lowerBound,
                    "\(kernel.name): \(attribute) as \(declared.dropLast().joined(separator: " ")), expected "
                        + allowed.joined(separator: ", "))
            }
        }
    }

    /// The exported names.
    mutating func checkExports() -> [String] {
        var (names, exported): ([String], Set<String>) = ([], [])
        for statement in source.statements
        where SourceText.standaloneWords.contains(source.text(statement.range.lowerBound)) {
            let first = statement.range.lowerBound
            let arguments = source.parts(first + 2..<max(statement.range.upperBound - 1, first + 2))
            let isTemplate = source.text(first) == "instantiate_kernel"
            guard arguments.count >= (isTemplate ? 3 : 1) else { continue }
            let name =
                isTemplate
                ? source.words(arguments[0]).map { $0.dropFirst().dropLast() }.joined()
                : source.text(arguments[0].lowerBound)
            let function = isTemplate ? source.text(arguments[1].lowerBound) : name
            if names.contains(name) { report(first, "\(name) is exported twice") }
            if !source.functions.contains(where: { $0.isKernel && $0.name == function }) {
                report(first, "\(name) is exported, but \(function) is no kernel of this text")
            }
            names.append(name)
            exported.insert(function)
        }
        for kernel in source.functions where kernel.isKernel && !exported.contains(kernel.name) {
            report(kernel.at, "kernel \(kernel.name) is not exported: write export_kernel or instantiate_kernel")
        }
        return names
    }
}
