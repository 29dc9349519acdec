import MLXNativeKernels
import XCTest

/// Checked execution through Swift: a user kernel with a fault fails its step, and the error names its lines.
final class CheckingTests: XCTestCase {
    override class func setUp() { chooseDevice() }

    private static let text = """
        kernel void shift(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
          const float next = x[(i + 1) % 32];
          x[i] = next;
        }
        export_kernel(shift)

        kernel void fill(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
          x[0] = 1.0f;
          x[i] = 1.0f;
        }
        export_kernel(fill)
        """

    private func run(_ function: String, _ options: HostOptions) throws {
        let device = try KernelDevice.host(options)
        let library = try KernelLibrary(text: Self.text, label: "mine", on: device)
        let x = try Tensor.zeros(shape: [32], on: device)
        try device.encode { step in
            try step.dispatch(
                function, in: library, buffers: [.readWrite(x, at: 0)], threads: GridSize(32), kind: "Mine")
        }.wait()
    }

    func testARaceFailsTheStepAndNamesItsLines() throws {
        for seed: UInt64 in [0, 987_654] {
            let error = assertRefused(
                .deviceFault, op: "Mine", what: "kernel shift of library mine", got: "mine:2 reads buffer 0 + "
            ) {
                try run("shift", HostOptions(orderSeed: seed, checking: .full))
            }
            XCTAssert(error?.got.contains("mine:3 writes it; no simdgroup_barrier(mem_device) between") ?? false)
            XCTAssertEqual(error?.fix.contains("Order seed 987654 replays it"), seed != 0)
        }
    }

    func testEqualValuesCanBeAllowed() throws {
        assertRefused(.deviceFault, got: "writes the same value") {
            try run("fill", HostOptions(checking: .full))
        }
        XCTAssertNoThrow(try run("fill", HostOptions(checking: .full, allowsSameValue: true)))
    }
}
