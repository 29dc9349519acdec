/// Rules about calls.
extension Lint {
    /// Kernel source that is compiled at run time uses fast math, which may fold these to constants.
    static let classifiers: Set<String> = [
        "isnan", "isinf", "isfinite", "isnormal", "isordered", "isunordered", "signbit",
    ]

    /// Functions whose precise and fast variants differ: without a namespace, compiler flags choose.
    static let twoVariants: Set<String> = [
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "cospi", "exp", "exp10", "exp2",
        "fmod",
        "log", "log10", "log2", "pow", "powr", "rsqrt", "sin", "sincos", "sinh", "sinpi", "sqrt", "tan", "tanh",
        "tanpi",
    ]

    mutating func checkCalls() {
        for (index, token) in source.tokens.enumerated() where token.kind == .word && source.text(index + 1) == "(" {
            if Self.classifiers.contains(token.text) {
                report(index, "\(token.text) may be folded by fast math: compare the bits, as_type<uint>(x)")
            }
            guard Self.twoVariants.contains(token.text), source.text(index - 1) != "." else { continue }
            let isChosen = source.text(index - 1) == "::" && ["precise", "fast"].contains(source.text(index - 2))
            if !isChosen {
                report(
                    index,
                    "\(token.text) depends on the compiler's flags: write precise::\(token.text) or fast::\(token.text)"
                )
            }
        }
    }

    /// Calls are identified by name and number of arguments.
    private struct Callee: Hashable {
        let name: String
        let arguments: Int
    }

    private func key(_ function: SourceText.Function) -> Callee {
        Callee(name: function.name, arguments: function.parameters.count)
    }

    /// The callee of the word at `index`, if it is a call.
    private func callee(_ index: Int) -> Callee? {
        guard source.tokens[index].kind == .word, let open = argumentList(after: index) else { return nil }
        let arguments = source.parts(open + 1..<max(source.close(open), open + 1)).count
        return Callee(name: source.text(index), arguments: arguments)
    }

    mutating func checkKernelCalls() {
        let kernels = Set(source.functions.filter(\.isKernel).map(key))
        for function in source.functions {
            for index in function.body {
                // A function that calls itself is reported as recursive.
                guard let callee = callee(index), kernels.contains(callee), callee != key(function) else { continue }
                report(index, "call of kernel \(callee.name): a kernel is only dispatched; let both call a function")
            }
        }
    }

    mutating func checkRecursion() {
        let known = Set(source.functions.map(key))
        var calls: [Callee: Set<Callee>] = [:]
        for function in source.functions {
            for index in function.body {
                guard let callee = callee(index), known.contains(callee) else { continue }
                calls[key(function), default: []].insert(callee)
            }
        }
        for function in source.functions {
            var (reached, next): (Set<Callee>, [Callee]) = ([], Array(calls[key(function)] ?? []))
            while let callee = next.popLast() {
                if reached.insert(callee).inserted { next += calls[callee] ?? [] }
            }
            if reached.contains(key(function)) { report(function.at, "\(function.name) is recursive") }
        }
    }

    /// The opening bracket of a call's arguments, as in `f(` or `f<half, 4>(`.
    private func argumentList(after index: Int) -> Int? {
        if source.text(index + 1) == "(" { return index + 1 }
        guard source.text(index + 1) == "<" else { return nil }
        var (next, angles) = (index + 1, 0)
        while next < min(index + 40, source.tokens.count) {
            switch source.text(next) {
            case "<": angles += 1
            case ">": angles -= 1
            case ";", "{", "}": return nil
            default: break
            }
            next += 1
            if angles == 0 { return source.text(next) == "(" ? next : nil }
        }
        return nil
    }
}
