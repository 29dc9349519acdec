import Foundation
import MLXNativeKernels
import XCTest

final class KernelErrorTests: DeviceTestCase {
    func testAllPartsComeFromTheCore() throws {
        let tensor = try Tensor.zeros(shape: [4, 2], on: device)
        let error = try XCTUnwrap(assertRefused(op: "Tensor") { try tensor[2..<6] })

        XCTAssertFalse(error.isRetryable)
        for part in [error.op, error.what, error.got, error.expected, error.fix] {
            XCTAssert(error.description.contains(part), "\"\(error)\" lacks \"\(part)\"")
        }
    }

    func testLocalizedErrorHasTheSameParts() throws {
        let error = try XCTUnwrap(assertRefused { try Tensor.zeros(shape: [3], on: device).reshaped([2]) })

        XCTAssertEqual(error.errorDescription, error.description)
        XCTAssertEqual(error.failureReason, error.what)
        XCTAssertEqual(error.recoverySuggestion, error.fix)
        XCTAssertEqual((error as any Error).localizedDescription, error.description)
        let version = try XCTUnwrap(error.debugDescription.firstMatch(of: #/^MLXNativeKernels [0-9.]+ /#)).output
        XCTAssertEqual(error.debugDescription, "\(version)[invalidArgument] \(error.description)")
    }

    func testEqualCausesGiveEqualErrors() throws {
        let tensor = try Tensor.zeros(shape: [3], on: device)
        let first = assertRefused { try tensor.reshaped([2]) }
        XCTAssertEqual(first, assertRefused { try tensor.reshaped([2]) })
        XCTAssertNotEqual(first, assertRefused { try tensor.reshaped([4]) })
    }

    func testNumbersOutOfRangeAreRefusedByName() throws {
        assertRefused(op: "Tensor", what: "axis 1", got: "-3") { try Tensor.zeros(shape: [2, -3], on: device) }
        assertRefused(op: "AttentionCache", what: "kvHeads", got: "-1", expected: "at least 0") {
            try AttentionCache(.init(kvHeads: -1, headDim: 4, capacity: 4), on: device)
        }
        assertRefused(op: "AttentionCache", what: "capacity", expected: "4294967295") {
            try AttentionCache(.init(kvHeads: 1, headDim: 4, capacity: 1 << 32), on: device)
        }
        let cache = try AttentionCache(.init(kvHeads: 1, headDim: 8, capacity: 1), on: device)
        assertRefused(op: "AttentionCache", got: "-1") { try cache.truncate(to: -1) }
        assertRefused(op: "AttentionCache", what: "latentDim is out of range", got: "-1") {
            try AttentionCache(.init(kvHeads: 1, headDim: 64, capacity: 4, latentDim: -1), on: device)
        }
        assertRefused(op: "KernelDevice", what: "workers") { try KernelDevice.host(HostOptions(workers: -1)) }
    }
}
