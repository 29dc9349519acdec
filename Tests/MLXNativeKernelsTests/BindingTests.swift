import Foundation
import XCTest

/// C++, Swift and Objective-C offer the same ops and options; the lists here name all differences.
final class BindingTests: XCTestCase {
    /// A type in the three APIs; nil if Swift has no such type and takes its properties as arguments.
    private struct Types {
        var cxx: String
        var swift: String?
        var objc: String
        init(_ cxx: String, swift: String?, objc: String) {
            self.cxx = cxx
            self.swift = swift
            self.objc = objc
        }
        init(_ name: String) { self.init(name, swift: name, objc: "MNK\(name)") }
    }

    /// Those that the description of the API does not generate.
    private static let types = [
        Types("RotaryStep"),
        Types("CacheStep", swift: nil, objc: "MNKCacheStep"),
        Types("Preparation", swift: nil, objc: "MNKPreparation"),
    ]

    /// The C++ name of a property whose name differs.
    private static let swiftMeanings: [String: [String]] = [
        "FlashDecode.cache": ["over"], "FlashDecode.output": ["results"], "FlashDecode.partials": ["results"],
        "FlashDecode.logSumExp": ["results"],
        "Hadamard.source": ["from"], "Hadamard.destination": ["into"],
        "KVCacheDequantize.source": ["from"], "KVCacheQuantize.destination": ["into"],
        "KVCacheWrite.destination": ["into"],
        "MergePartials.parts": ["partials"], "MergePartials.output": ["results"],
        "MergePartials.partials": ["results"], "MergePartials.logSumExp": ["results"],
    ]
    private static let objcMeanings: [String: [String]] = [
        "MNKCacheStep.prefixes": ["after"],
        "MNKFlashDecode.cache": ["over"], "MNKFlashDecode.quantizedCache": ["over"],
        "MNKFlashDecode.queriesView": ["queries"],
        "MNKHadamard.source": ["from"], "MNKHadamard.destination": ["into"], "MNKHadamard.usesSigns": ["signs"],
        "MNKHadamard.codec": ["signs"], "MNKHadamard.inverse": ["isInverse"],
        "MNKKVCacheDequantize.cache": ["from"],
        "MNKKVCacheQuantize.cache": ["into"], "MNKKVCacheQuantize.rowSequences": ["rows"],
        "MNKKVCacheQuantize.rowPositions": ["rows"], "MNKKVCacheQuantize.keysView": ["keys"],
        "MNKKVCacheQuantize.valuesView": ["values"],
        "MNKKVCacheWrite.cache": ["into"], "MNKKVCacheWrite.rowSequences": ["rows"],
        "MNKKVCacheWrite.rowPositions": ["rows"], "MNKKVCacheWrite.keysView": ["keys"],
        "MNKKVCacheWrite.valuesView": ["values"],
        "MNKPreparation.elementType": ["dtype"], "MNKPreparation.tuningFileURL": ["tuningFile"],
    ]
    /// C++ structs that are not options: parts of the core, results, and types whose properties the other APIs take as
    /// arguments.
    private static let others: Set<String> = [
        "Argument", "Binding", "BoundMemory", "CachePrefix", "DeviceLimits", "DeviceProfile",
        "Dispatch", "Error",
        "FunctionConstant", "Grid",
        "InlineBytes", "KVCacheWrite.Rows", "KVCodecSizes", "KernelKey", "LibraryOrigin", "LibrarySource",
        "MemoryRange",
        "Plan", "PreparationSummary", "QuantizedCacheExtents", "ReadyDispatch", "Region", "RememberedCall",
        "RotaryPositions",
        "RotaryPositions.List",
        "SubmissionReport", "Summary", "Summary.Counts", "ThreadgroupMemory", "metal.Options",
    ]

    func testEveryBindingHasEveryOp() throws {
        let (cxx, swift, objc) = try bindings()
        let header = try texts("../Tests/Core/Ops/Common", "BindingCases.hpp")[0]
        let listed = try XCTUnwrap(header.firstMatch(of: /using AnyOp =\s+std::variant<([^>]*)>/)).1
        XCTAssertEqual(Set(listed.matches(of: /\w+/).map { String($0.0) }), Set(cxx.ops), "ops with cases for all APIs")
        XCTAssertEqual(Set(objc.ops), Set(cxx.ops))
        for op in cxx.ops { XCTAssertNotNil(swift.properties[op], "Swift has no \(op)") }
    }

    func testEveryBindingHasEveryProperty() throws {
        let (cxx, swift, objc) = try bindings()
        let all = Self.types + cxx.ops.map { Types($0) }
        for type in all {
            let expected = Set(try XCTUnwrap(cxx.properties[type.cxx], "C++ has no \(type.cxx)"))
            XCTAssertFalse(expected.isEmpty, type.cxx)
            if let name = type.swift {
                let found = meanings(of: name, in: swift, Self.swiftMeanings)
                XCTAssertEqual(found, expected, "Swift's \(name) and C++'s \(type.cxx) differ")
            }
            let found = meanings(of: type.objc, in: objc, Self.objcMeanings)
            XCTAssertEqual(found, expected, "\(type.objc) and C++'s \(type.cxx) differ")
        }
        let compared = Set(all.map(\.cxx))
        let missed = cxx.properties.filter { !$0.value.isEmpty }.keys.filter { !compared.contains($0) }
        XCTAssertEqual(Set(missed), Self.others, "structs of C++ that no list names, or that are gone")
        XCTAssertEqual(
            Set(objc.properties.filter { !$0.value.isEmpty }.keys),
            Set(all.map(\.objc)).union(["MNKDispatch", "MNKIntegers", "MNKRotaryPositions"]),
            "classes that no list names")
    }

    /// Swift's is written by hand.
    func testTheRotaryEmbeddingHasEveryProperty() throws {
        let header = try texts("MLXNativeKernelsCore/include/MLXNativeKernels/Generated", "Rotary.hpp")
        let expected = Set(try XCTUnwrap(BindingLists.cxx(header).properties["RotaryEmbedding"]))
        let found = meanings(
            of: "RotaryEmbedding", in: try bindings().swift, ["RotaryEmbedding.layout": ["layout", "sections"]])
        XCTAssertEqual(found, expected)
    }

    func testEveryBindingHasEveryCase() throws {
        let (cxx, swift, objc) = try bindings()
        let enums: [(cxx: String, swift: String, objc: String, prefix: String)] = [
            ("ErrorCode", "KernelError.Code", "MNKErrorCode", "MNKError"),
            ("DType", "ElementType", "MNKElementType", "MNKElementType"),
            ("LibraryOrigin.Kind", "LibraryOrigin.Kind", "MNKLibraryOrigin", "MNKLibraryOrigin"),
        ]
        let shortNames = [
            "f32": "float32", "f16": "float16", "bf16": "bfloat16", "u8": "uint8", "u16": "uint16", "u32": "uint32",
            "i32": "int32",
        ]
        for item in enums {
            let expected = Set(try XCTUnwrap(cxx.cases[item.cxx], item.cxx).map { (shortNames[$0] ?? $0).lowercased() })
            XCTAssertEqual(Set((swift.cases[item.swift] ?? []).map { $0.lowercased() }), expected, item.swift)
            let named = (objc.cases[item.objc] ?? []).map { $0.dropFirst(item.prefix.count).lowercased() }
            XCTAssertEqual(Set(named), expected, item.objc)
        }
        // Parts of the core, and argument kinds for which the APIs have functions.
        let others: Set = [
            "Access", "Argument.Kind", "ConstantType", "Grid.Unit", "LibrarySource.Kind", "MatrixLayout",
            "WorkProgress",
        ]
        XCTAssertEqual(Set(cxx.cases.keys), Set(enums.map(\.cxx)).union(others))
        XCTAssertEqual(
            Set(objc.cases.keys), Set(enums.map(\.objc)).union(["MNKAccess"]))
    }

    /// Swift takes the properties of the other APIs' descriptor as arguments.
    func testSwiftPreparesWithEveryProperty() throws {
        let cxx = try bindings().cxx.properties
        let swift = try texts("MLXNativeKernels", "Prepare.swift")[0]
        let declaration = try XCTUnwrap(swift.firstMatch(of: /public func prepare\((?s:(.*?))\) async/)).1
        let arguments = declaration.matches(of: /(?:for )?(\w+): [\[A-Z]/).map { String($0.1) }
        XCTAssertEqual(arguments, cxx["Preparation"])
        // For the last two, the other APIs only report whether the file holds the choices.
        XCTAssertEqual(
            cxx["PreparationSummary"], ["kernels", "measured", "known", "seconds", "tuningFile", "notKept"])
        let objc = try texts("MLXNativeKernelsCore/include/MLXNativeKernels", "MNKPreparation.h")[0]
        for name in ["kernels", "measured", "known", "seconds", "isKept"] {
            XCTAssertTrue(swift.contains("public let \(name):"), name)
            XCTAssertNotNil(objc.firstMatch(of: try Regex("readonly.*\\b\(name)\\b")), name)
        }
    }

    /// The functions of the cache, with the declaration in each API.
    func testEveryBindingHasEveryFunctionOfTheCache() throws {
        let names: [(cxx: String, swift: String, objc: String)] = [
            ("make", "public convenience init(\n        _ dimensions", "initWithDevice:"),
            ("load", "init(\n        contentsOf", "contentsOfURL:"), ("save", "func save(to", "saveToURL:"),
            ("descriptor", "let dimensions:", "*descriptor;"), ("view", "let keys: Tensor", "*view;"),
            ("quantizedView", "var quantizedView:", "*quantizedView;"),
            ("byteCount", "var byteCount:", "NSUInteger byteCount;"),
            ("bytesPerToken", "var bytesPerToken:", "bytesPerToken;"), ("bytesSaved", "var bytesSaved:", "bytesSaved;"),
            ("nextPosition", "func nextPosition(ofSequence", "nextPositionOfSequence:"),
            ("nextPositions", "case next(of", "nextPositionsOfCache:"),
            ("count", "func count(ofSequence", "countOfSequence:"),
            ("isSuspect", "func isSuspect(sequence", "isSequenceSuspect:"),
            ("append", "func append(", "append:"), ("attend", "func attend(", "attend:"),
            ("appendAndAttend", "func appendAndAttend(", "appendAndAttend:"),
            ("copy", "func copy(sequence", "copySequence:"),
            ("grown", "func grow(", "growCache:"), ("quantized", "func quantize(", "quantizeCache:"),
            ("dequantize", "func dequantize(", "dequantizeCache:"),
            ("text", "extension AttentionCache: CustomStringConvertible", "Its `description` is one line"),
            ("truncate", "func truncate(to", "truncateToPosition:"), ("reset", "func reset()", "(void)reset;"),
        ]
        let header = try texts("MLXNativeKernelsCore/include/MLXNativeKernels", "AttentionCache.hpp")[0]
        let body = try XCTUnwrap(header.firstMatch(of: /class AttentionCache \{(?s:(.*?))private:/)).1
        let declared = body.matches(of: /\n  (?:static )?[\w:<>&\s]+?[\s>](\w+)\(/).map { String($0.1) }
        XCTAssertEqual(Set(declared), Set(names.map(\.cxx)))
        let swift = try texts("MLXNativeKernels", ".swift").joined(separator: "\n")
        let objc = try texts("MLXNativeKernelsCore/include/MLXNativeKernels", ".h").joined(separator: "\n")
        for name in names {
            XCTAssertTrue(swift.contains(name.swift), "Swift has no \(name.cxx)")
            XCTAssertTrue(objc.contains(name.objc), "Objective-C has no \(name.cxx)")
        }
    }

    /// Copying and comparing use the class's keys, so the keys must include every property.
    func testEveryPropertyOfADescriptorIsPartOfItsValue() throws {
        let objc = try bindings().objc
        var own: [String: Set<String>] = [:]
        var extended: Set<String> = []
        for text in try texts("MLXNativeKernelsCore/ObjC", ".mm") {
            for match in text.matches(of: /@implementation (MNK\w+)\n(?s:(.*?))\n@end/) {
                guard let body = match.2.firstMatch(of: /valueKeys \{\n(?s:(.*?))\n\}/)?.1 else { continue }
                let name = String(match.1)
                own[name] = Set(body.matches(of: /@"(\w+)"/).map { String($0.1) })
                if body.contains("[super valueKeys]") { extended.insert(name) }
            }
        }
        for (name, properties) in objc.properties {
            var keys = try XCTUnwrap(own[name], "\(name) has no keys")
            if extended.contains(name) { keys.formUnion(own[objc.bases[name] ?? ""] ?? []) }
            // A tensor such as `keys` belongs to the view `keysView`, which is the value.
            let missing = Set(properties).filter { !keys.contains($0) && !keys.contains($0 + "View") }
            XCTAssertTrue(missing.isEmpty, "\(name) leaves \(missing.sorted()) out of its value")
        }
    }

    func testListsFindDifferences() {
        let cxx = BindingLists.cxx([
            "struct Op {\n  static constexpr std::string_view name = \"Op\";\n  int a = 1;\n  B b;\n};"
        ])
        XCTAssertEqual(cxx.ops, ["Op"])
        XCTAssertEqual(cxx.properties["Op"], ["a", "b"])
        let swift = BindingLists.swift(["public struct Op {\n    public var a = 1\n    public var c: Int { 2 }\n}"])
        XCTAssertEqual(swift.properties["Op"], ["a"])
        let objc = BindingLists.objectiveC([
            "@interface MNKOp : MNKOperation\n@property(nonatomic) int a;\n@property(readonly) int d;\n@end"
        ])
        XCTAssertEqual(objc.ops, ["Op"])
        XCTAssertEqual(objc.properties["MNKOp"], ["a"])
        XCTAssertEqual(BindingLists.cxx(["enum class E : int { x = 1, y };"]).cases["E"], ["x", "y"])
    }

    private func meanings(of type: String, in lists: BindingLists, _ meanings: [String: [String]]) -> Set<String> {
        Set((lists.properties[type] ?? []).flatMap { meanings["\(type).\($0)"] ?? [$0] })
    }

    private func bindings() throws -> (cxx: BindingLists, swift: BindingLists, objc: BindingLists) {
        let headers = "MLXNativeKernelsCore/include/MLXNativeKernels"
        return (
            .cxx(try texts(headers, ".hpp")), .swift(try texts("MLXNativeKernels", ".swift")),
            .objectiveC(try texts(headers, ".h"))
        )
    }

    /// Sources with this suffix. They exist where the tests were built, but not where they are installed.
    private func texts(_ folder: String, _ ending: String) throws -> [String] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Sources").appendingPathComponent(folder)
        guard let found = FileManager.default.enumerator(atPath: root.path) else {
            throw XCTSkip("the sources are not at \(root.path)")
        }
        let names = found.compactMap { $0 as? String }.filter { $0.hasSuffix(ending) }.sorted()
        // Generated files are the same by construction.
        return try names.filter { !$0.contains("Generated/") }.map {
            try String(contentsOf: root.appendingPathComponent($0), encoding: .utf8)
        }
    }
}
