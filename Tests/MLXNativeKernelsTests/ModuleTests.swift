import MLXNativeKernels
import XCTest

#if SWIFT_PACKAGE
    import MLXNativeKernelsCore
#endif

/// Swift can import the C module separately, and it agrees with the Swift API.
final class ModuleTests: XCTestCase {
    override class func setUp() { chooseDevice() }

    func testElementSizesMatchTheCModule() {
        XCTAssertEqual(mnk_dtype_size(.MNK_F16), 2)
        XCTAssertEqual(ElementType.allCases.map(\.byteSize), [4, 2, 2, 1, 2, 4, 4])
        XCTAssertEqual(ElementType.allCases.map(\.description), ["f32", "f16", "bf16", "u8", "u16", "u32", "i32"])
    }

    func testErrorDescriptionMatchesTheCModule() throws {
        let device = try KernelDevice.default()
        let swift = assertRefused { try Tensor.zeros(shape: [2, 3], on: device).reshaped([7]) }

        var failure: OpaquePointer?
        let plain = try XCTUnwrap(mnk_device_make_default(&failure))
        let tensor = try XCTUnwrap(mnk_tensor_make(plain, .MNK_F32, [2, 3], 2, &failure))
        XCTAssertNil(mnk_tensor_make_reshaped(tensor, [7], 1, &failure))
        let error = try XCTUnwrap(failure)
        XCTAssertEqual(swift?.description, String(cString: mnk_error_message(error)))

        mnk_error_release(error)
        mnk_tensor_release(tensor)
        mnk_device_release(plain)
    }
}
