import MLXNativeKernels
import MLXNativeKernelsCoreTests
import MLXNativeKernelsHost
import XCTest

/// Registers the Host device, which is the default device if the GPU cannot run the kernels, as in a virtual machine.
func chooseDevice() {
    registerHostDevice()
    core_test_choose_device()
}

/// A test with a device, and tokens whose numbers identify their position.
class DeviceTestCase: XCTestCase {
    private(set) var device: KernelDevice!

    override class func setUp() { chooseDevice() }

    override func setUpWithError() throws {
        device = try KernelDevice.default()
    }

    override func tearDown() {
        // XCTest retains all test objects until the end.
        device = nil
    }

    /// One key or value row for each position: `[positions, heads, headDim]`. Exact in every float type.
    func tokens(_ positions: Range<Int>, heads: Int, headDim: Int, dtype: ElementType = .float16) throws -> Tensor {
        let numbers = positions.flatMap { position in
            (0..<heads).flatMap { head in
                (0..<headDim).map { element in
                    number(position: position, head: head, element: element)
                }
            }
        }
        return try Tensor(numbers, shape: [positions.count, heads, headDim], dtype: dtype, on: device)
    }

    func number(position: Int, head: Int, element: Int) -> Float {
        Float((position * 31 + head * 7 + element * 3) % 251 + 1)
    }
}

/// Counts from any thread.
final class Counter: @unchecked Sendable {
    private let lock = NSLock()
    private var count = 0

    func increment() { lock.withLock { count += 1 } }
    var value: Int { lock.withLock { count } }
}

/// An error that does not come from the library.
struct Abandoned: Error {}
