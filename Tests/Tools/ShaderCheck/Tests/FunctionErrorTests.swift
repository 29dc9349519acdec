import Foundation
import ShaderCheck
import XCTest

/// The errors in the tables: each function has one, which matches the Host device's perturbation.
final class FunctionErrorTests: XCTestCase {
    private let layout = Layout()

    private func rows() throws -> [FunctionList.Row] {
        try FunctionList(tables: [layout.functions, layout.testFunctions]).rows
    }

    func testEveryVariantHasAnErrorAndEvidence() throws {
        for row in try rows() {
            let error = row.variant == "fast" ? row.fastError : row.preciseError
            XCTAssertNotEqual(error, "-", "\(row.line): \(row.declaration)")
            XCTAssert(
                row.evidence.contains("MSL ") || row.evidence.contains("seen"), "\(row.declaration): \(row.evidence)")
        }
    }

    /// A function whose error depends on compiler flags does not belong in a table.
    func testNoRowIsBare() throws {
        for row in try rows() {
            XCTAssertFalse(row.needsVariant, "\(row.file):\(row.line): write precise:: or fast::")
        }
    }

    func testErrorsAgreeWithTheHostDevice() throws {
        let path = "\(layout.root)/Sources/MLXNativeKernelsHost/MetalStdlib/Accuracy.h"
        let pattern = /\{"(\w+)", (\w+(?:\([^)]*\))?), (\w+(?:\([^)]*\))?), \w+(?:\([^)]*\))?\}/
        var bounds: [String: (precise: String, fast: String)] = [:]
        for match in try String(contentsOfFile: path, encoding: .utf8).matches(of: pattern) {
            bounds[String(match.1)] = (String(match.2), String(match.3))
        }
        XCTAssertGreaterThan(bounds.count, 30)
        var compared = 0
        for row in try rows() {
            guard let bound = bounds[row.name] else { continue }
            for (error, bound) in [(row.preciseError, bound.precise), (row.fastError, bound.fast)] where error != "-" {
                XCTAssert(agree(error, bound), "\(row.declaration): the table says \(error), Accuracy.h says \(bound)")
                compared += 1
            }
        }
        XCTAssertGreaterThan(compared, 10)
    }

    private func agree(_ error: String, _ bound: String) -> Bool {
        let first = bound.firstMatch(of: /\((?:0x1p)?([-\d.]+)/).map { String($0.1) } ?? ""
        switch bound.prefix(while: { $0 != "(" }) {
        case "kExact": return ["exact", "correctly rounded"].contains(error)
        case "ulps": return error.hasPrefix("\(first) ulp")
        case "growingUlps": return error == "\(first) + floor(2|x|) ulp"
        case "within": return error.hasPrefix("2^\(first) absolute")
        case "kFormula": return error.hasPrefix("as ")
        default: return false
        }
    }
}
