import Foundation
import MLXNativeKernels
import XCTest

final class TensorTests: DeviceTestCase {
    func testFreshMemoryIsZero() throws {
        for dtype in ElementType.allCases {
            let tensor = try Tensor.zeros(shape: [3, 5], dtype: dtype, on: device)
            XCTAssertEqual(tensor.shape, [3, 5])
            XCTAssertEqual(tensor.dtype, dtype)
            XCTAssertEqual(tensor.count, 15)
            XCTAssertEqual(tensor.byteCount, 15 * dtype.byteSize)
            XCTAssertEqual(try tensor.bytes(), [UInt8](repeating: 0, count: tensor.byteCount))
            XCTAssertEqual("\(tensor)", "\(dtype) [3, 5]")
        }
    }

    func testArraysRoundTrip() throws {
        XCTAssertEqual(try Tensor([1.5, -2, 3], on: device).array(of: Float.self), [1.5, -2, 3])
        XCTAssertEqual(try Tensor([7, .max] as [UInt32], on: device).array(of: UInt32.self), [7, .max])
        XCTAssertEqual(try Tensor([.min, 4] as [Int32], on: device).array(of: Int32.self), [.min, 4])
        XCTAssertEqual(try Tensor([9, 255] as [UInt8], on: device).array(of: UInt8.self), [9, 255])
        XCTAssertEqual(try Tensor([9, 65535] as [UInt16], on: device).array(of: UInt16.self), [9, 65535])
        XCTAssertEqual(try Tensor(bytes: Data([1, 2, 3]), shape: [3], dtype: .uint8, on: device).bytes(), [1, 2, 3])
    }

    func testFloatTypesConvertAndIntegersDoNot() throws {
        for dtype in [ElementType.float32, .float16, .bfloat16] {
            let tensor = try Tensor([0.5, -3, 96], shape: [3, 1], dtype: dtype, on: device)
            XCTAssertEqual(try tensor.array(of: Float.self), [0.5, -3, 96])
            try tensor.write([2, 4, 8])
            XCTAssertEqual(try tensor.array(of: Float.self), [2, 4, 8])
        }
        assertRefused(op: "Tensor", got: "u32", expected: "f16") { try Tensor([1], dtype: .uint32, on: device) }
        let integers = try Tensor([1, 2] as [UInt32], on: device)
        assertRefused(op: "Tensor", got: "u32", expected: "f32") { try integers.array(of: Float.self) }
        assertRefused(op: "Tensor", got: "u32", expected: "i32") { try integers.array(of: Int32.self) }
        assertRefused(op: "Tensor", got: "u32") { try integers.write([1, 2] as [Float]) }
        assertRefused(op: "Tensor", got: "u32") { try integers.write([1, 2] as [UInt16]) }
        XCTAssertEqual(try integers.array(of: UInt32.self), [1, 2])
    }

    func testShapeAndNumbersMustAgree() throws {
        assertRefused(op: "Tensor", got: "12 bytes", expected: "16 bytes") {
            try Tensor([1, 2, 3], shape: [2, 2], on: device)
        }
        assertRefused(op: "Tensor", got: "3 bytes", expected: "4 bytes") {
            try Tensor(bytes: [1, 2, 3] as [UInt8], shape: [2], dtype: .float16, on: device)
        }
        assertRefused { try Tensor.zeros(shape: [1, 1, 1, 1, 1, 1, 1, 1, 1], on: device) }
        assertRefused { try Tensor.zeros(shape: [.max, .max], on: device) }
    }

    func testSlicesShareMemoryOfTheirParent() throws {
        let tensor = try Tensor((0..<24).map(UInt32.init), shape: [6, 4], on: device)
        let slice = try tensor[2..<5]
        XCTAssertEqual(slice.shape, [3, 4])
        XCTAssertEqual(slice.byteOffset, 32)
        let inner = try slice[1..<2]
        XCTAssertEqual(inner.byteOffset, 48)
        try inner.write([90, 91, 92, 93] as [UInt32])
        XCTAssertEqual(try tensor.array(of: UInt32.self)[11...16].map { $0 }, [11, 90, 91, 92, 93, 16])
        XCTAssertEqual(try tensor[6..<6].count, 0)
        assertRefused(op: "Tensor") { try slice[2..<4] }
        assertRefused(op: "Tensor", got: "-1") { try slice[-1..<1] }
        assertRefused(op: "Tensor") { try tensor.reshaped([24])[20..<25] }
    }

    func testReshapedKeepsElementsAndMemory() throws {
        let tensor = try Tensor((0..<12).map(Float.init), shape: [3, 4], on: device)
        let other = try tensor.reshaped([2, 3, 2])
        XCTAssertEqual(other.shape, [2, 3, 2])
        try other.write([Float](repeating: 1, count: 12))
        XCTAssertEqual(try tensor.array(of: Float.self), [Float](repeating: 1, count: 12))
        assertRefused(op: "Tensor") { try tensor.reshaped([5]) }
    }

    func testTensorsWithoutElementsOrAxesExist() throws {
        let none = try Tensor([] as [Float], on: device)
        XCTAssertEqual(none.shape, [0])
        XCTAssertEqual(try none.array(of: Float.self), [])
        let single = try Tensor([5], shape: [], on: device)
        XCTAssertEqual(single.count, 1)
        XCTAssertEqual(try single.array(of: Float.self), [5])
    }
}
