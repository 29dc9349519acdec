import Foundation
import XCTest

/// What the description of the API does not generate is the same in C++, Swift and Objective-C.
final class BindingTests: XCTestCase {
    /// Swift takes the properties of both as arguments.
    func testObjectiveCHasEveryProperty() throws {
        let (cxx, _, objc) = try bindings()
        let names = ["prefixes": "after", "elementType": "dtype", "tuningFileURL": "tuningFile"]
        for type in ["CacheStep", "Preparation"] {
            let expected = Set(try XCTUnwrap(cxx.properties[type], "C++ has no \(type)"))
            let found = Set(try XCTUnwrap(objc.properties["MNK\(type)"]).map { names[$0] ?? $0 })
            XCTAssertEqual(found, expected, "MNK\(type) and C++'s \(type) differ")
        }
    }

    /// Others belong in the description of the API, which brings them to every language.
    func testTypesThatCxxAloneWritesByHand() throws {
        let structs: Set = [
            "Argument", "Binding", "BoundMemory", "CachePrefix", "CacheStep", "DeviceLimits", "DeviceProfile",
            "Dispatch", "Error", "FunctionConstant", "Grid", "InlineBytes", "KVCodecSizes", "KernelKey",
            "LibraryOrigin", "LibrarySource", "MemoryRange", "Plan", "Preparation", "PreparationSummary",
            "QuantizedCacheExtents", "ReadyDispatch", "Region", "RememberedCall", "RotaryPositions",
            "RotaryPositions.List", "SubmissionReport", "Summary", "Summary.Counts", "ThreadgroupMemory",
            "metal.Options",
        ]
        let enums: Set = [
            "Access", "Argument.Kind", "ConstantType", "DType", "ErrorCode", "Grid.Unit", "LibraryOrigin.Kind",
            "LibrarySource.Kind", "MatrixLayout", "WorkProgress",
        ]
        let cxx = try bindings().cxx
        XCTAssertEqual(Set(cxx.properties.filter { !$0.value.isEmpty }.keys), structs)
        XCTAssertEqual(Set(cxx.cases.keys), enums)
    }

    /// Swift's is written by hand.
    func testTheRotaryEmbeddingHasEveryProperty() throws {
        let header = try texts("MLXNativeKernelsCore/include/MLXNativeKernels/Generated", "Rotary.hpp")
        let expected = Set(try XCTUnwrap(BindingLists.cxx(header).properties["RotaryEmbedding"]))
        let properties = try XCTUnwrap(try bindings().swift.properties["RotaryEmbedding"])
        let found = Set(properties.flatMap { $0 == "layout" ? ["layout", "sections"] : [$0] })
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
        for text in try texts("MLXNativeKernelsCore/ObjC", ".mm") {
            for match in text.matches(of: /@implementation (MNK\w+)\n(?s:(.*?))\n@end/) {
                guard let body = match.2.firstMatch(of: /valueKeys \{\n(?s:(.*?))\n\}/)?.1 else { continue }
                let name = String(match.1)
                own[name] = Set(body.matches(of: /@"(\w+)"/).map { String($0.1) })
            }
        }
        for (name, properties) in objc.properties where !properties.isEmpty {
            let missing = Set(properties).subtracting(try XCTUnwrap(own[name], "\(name) has no keys"))
            XCTAssertTrue(missing.isEmpty, "\(name) leaves \(missing.sorted()) out of its value")
        }
    }

    func testListsFindDifferences() {
        let cxx = BindingLists.cxx([
            "struct Op {\n  static constexpr int c = 1;\n  int a = 1;\n  B b;\n};"
        ])
        XCTAssertEqual(cxx.properties["Op"], ["a", "b"])
        let swift = BindingLists.swift(["public struct Op {\n    public var a = 1\n    public var c: Int { 2 }\n}"])
        XCTAssertEqual(swift.properties["Op"], ["a"])
        let objc = BindingLists.objectiveC([
            "@interface MNKOp : MNKDescriptor\n@property(nonatomic) int a;\n@property(readonly) int d;\n@end"
        ])
        XCTAssertEqual(objc.properties["MNKOp"], ["a"])
        XCTAssertEqual(BindingLists.cxx(["enum class E : int { x = 1, y };"]).cases["E"], ["x", "y"])
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
