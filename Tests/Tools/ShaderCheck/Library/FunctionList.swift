import Foundation

/// The Metal library functions that kernels may call, read from tables such as functions.tsv. The strict compile
/// declares exactly these, so the list and the check cannot disagree.
public struct FunctionList: Sendable {
    public struct Row: Sendable, Equatable {
        public let file: String
        public let line: Int
        /// As in the table: `float precise::exp(float)`.
        public let declaration: String
        public let result: String
        /// `precise`, `fast` or empty.
        public let variant: String
        /// `exp`, or `as_type<float>`; without spaces.
        public let name: String
        public let parameters: [Parameter]
        public let evidence: String
        public let preciseError: String
        public let fastError: String
    }

    public struct Parameter: Sendable, Hashable {
        public let type: String
        /// Whether arguments of other types convert implicitly. Written `~ushort` in the table.
        public let converts: Bool
    }

    /// A table that cannot be parsed. Says what, got, expected and fix.
    public struct Mistake: Error, CustomStringConvertible {
        public let description: String
    }

    public private(set) var rows: [Row] = []

    public init() {}

    public init(tables: [String]) throws {
        for path in tables {
            guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
                throw Mistake(
                    description:
                        "\(path): the table of functions cannot be read (expected a text file). Correct the path.")
            }
            try add(text, from: path)
        }
    }

    public mutating func add(_ text: String, from file: String) throws {
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if line.hasPrefix("#") || line.allSatisfy(\.isWhitespace) { continue }
            let columns = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            guard columns.count == 4, columns.allSatisfy({ !$0.isEmpty }) else {
                throw Mistake(
                    description: "\(file):\(index + 1): a row has four filled columns, parted by tabs (got "
                        + "\(columns.count): \(line)). Write: declaration, evidence, precise error, fast error.")
            }
            rows.append(try Self.row(columns, file: file, line: index + 1))
        }
    }

    private static func row(_ columns: [String], file: String, line: Int) throws -> Row {
        let declaration = columns[0]
        guard let open = declaration.firstIndex(of: "("), declaration.hasSuffix(")"),
            let space = declaration[..<open].lastIndex(of: " ")
        else {
            throw Mistake(
                description: "\(file):\(line): the first column is a declaration (got \(declaration), expected "
                    + "something like: float precise::exp(float)). Correct it.")
        }
        let qualified = declaration[declaration.index(after: space)..<open].components(separatedBy: "::")
        let inside = declaration[declaration.index(after: open)...].dropLast()
        let parameters = inside.components(separatedBy: ", ").filter { !$0.isEmpty }.map {
            Parameter(type: $0.hasPrefix("~") ? String($0.dropFirst()) : $0, converts: $0.hasPrefix("~"))
        }
        return Row(
            file: file, line: line, declaration: declaration, result: String(declaration[..<space]),
            variant: qualified.count == 2 ? qualified[0] : "", name: qualified[qualified.count - 1],
            parameters: parameters, evidence: columns[1], preciseError: columns[2], fastError: columns[3])
    }
}

extension FunctionList {
    /// Declarations are marked as deprecated with this text and the row's index, so the compiler reports each use.
    private static let useMark = "shader-check row "

    /// The row whose use a compiler warning reports.
    static func usedRow(in message: String) -> Int? {
        message.firstRange(of: useMark).flatMap { Int(message[$0.upperBound...].prefix(while: \.isNumber)) }
    }

    /// The list as C++ declarations. A template without a body catches every call whose arguments do not have exactly
    /// the listed types, where C++ would convert them and Metal, which has more overloads, would call another function.
    var header: String {
        var text = """
            #pragma once
            namespace metal {
            template <typename To, typename From> To as_type(From) = delete;
            template <typename T, int columns, int rows>
            simdgroup_matrix<T, columns, rows> make_filled_simdgroup_matrix(T) = delete;

            """
        var refusals: [String] = []
        for (index, row) in rows.enumerated() {
            let mark = "__attribute__((deprecated(\"\(Self.useMark)\(index)\")))"
            let types = row.parameters.map(\.type).joined(separator: ", ")
            let template = row.name.contains("<") ? "template <> " : ""
            // Makes the compiler report a bad row at its table; 3 means a system header.
            text += "# \(row.line) \"\(row.file)\" 3\n"
            text += inVariant(row, "\(template)\(mark) \(row.result) \(row.name)(\(types));")
            let refusal = refusal(of: row)
            if template.isEmpty, !row.parameters.isEmpty, !refusals.contains(refusal) { refusals.append(refusal) }
        }
        return text + refusals.joined() + "}\nusing metal::as_type;\n"
    }

    private func inVariant(_ row: Row, _ declaration: String) -> String {
        (row.variant.isEmpty ? declaration : "namespace \(row.variant) { \(declaration) }") + "\n"
    }

    private func refusal(of row: Row) -> String {
        let exact = row.parameters.indices.filter { !row.parameters[$0].converts }
        guard !exact.isEmpty else { return "" }
        let names = exact.map { "typename A\($0)" }.joined(separator: ", ")
        let parameters = row.parameters.enumerated().map { $1.converts ? $1.type : "A\($0)" }
        return inVariant(row, "template <\(names)> void \(row.name)(\(parameters.joined(separator: ", "))) = delete;")
    }
}

extension FunctionList.Row {
    /// Whether the function has variants among which compiler flags choose, unless the row does.
    public var needsVariant: Bool { variant.isEmpty && Lint.twoVariants.contains(name) }
}
