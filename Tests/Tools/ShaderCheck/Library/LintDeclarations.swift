/// Rules about variables, types and pointers.
extension Lint {
    private static let spaces: Set<String> = ["device", "constant", "threadgroup", "thread"]
    private static let scalars: Set<String> = [
        "void", "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "half", "bfloat",
        "size_t",
        "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "atomic_uint",
        "atomic_int",
        "atomic_float",
    ]
    private static let vectors = Set(scalars.flatMap { type in (2...4).map { "\(type)\($0)" } })

    mutating func checkLocals() {
        for function in source.functions {
            for index in function.body {
                switch source.text(index) {
                case "static":
                    report(index, "static variable in a function: Metal has no storage that outlives a thread")
                case "[" where isLambda(index):
                    report(index, "lambda expression: Metal has them since 3.2 only")
                case "threadgroup_array" where !function.isKernel:
                    report(index, "threadgroup variable outside a kernel: give the function a threadgroup pointer")
                default: break
                }
            }
        }
    }

    private func isLambda(_ index: Int) -> Bool {
        let before = source.tokens[index - 1]
        let isSubscript = before.kind == .word && before.text != "return" || [")", "]"].contains(before.text)
        return !isSubscript && source.text(index + 1) != "[" && before.text != "["
    }

    mutating func checkTypes() {
        for index in source.derived { report(index, "derived class: Metal's specification has none") }
        for function in source.functions where function.isMember {
            report(
                function.at,
                "member function \(function.name): Metal calls it for objects in thread memory alone; write a function")
        }
    }

    /// A pointer or reference must name the address space of its target; clang would accept any.
    mutating func checkPointers() {
        let types = Self.scalars.union(Self.vectors).union(source.types)
        let ends: Set<String> = [";", "{", "}", "(", ",", "=", ")", "return"]
        for (index, token) in source.tokens.enumerated() where token.text == "*" || token.text == "&" {
            var (start, angles) = (index, 0)
            while start > 0 {
                let before = source.text(start - 1)
                if before == ">" { angles += 1 }
                if before == "<" {
                    if angles == 0 { break }
                    angles -= 1
                }
                if angles == 0, ends.contains(before) { break }
                start -= 1
            }
            let head = source.words(start..<index)
            guard let last = head.last(where: { $0 != "const" }),
                types.contains(last) || (last == ">" && isType(head, types))
            else { continue }
            if Self.spaces.isDisjoint(with: head) {
                report(
                    index, "pointer or reference without an address space: \(head.joined(separator: " "))\(token.text)")
            }
        }
    }

    /// `vec < half , 4 >`, and not `a > `.
    private func isType(_ head: [String], _ types: Set<String>) -> Bool {
        guard let open = head.firstIndex(of: "<"), open > 0 else { return false }
        return head[open - 1] == "vec" || head[open - 1] == "atomic" || types.contains(head[open - 1])
    }
}
