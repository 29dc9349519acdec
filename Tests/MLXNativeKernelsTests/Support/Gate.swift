import MLXNativeKernels
import XCTest

/// Delays work on a device until the gate opens, through memory that the kernel polls.
final class Gate: @unchecked Sendable {
    private let tensor: Tensor
    private let memory: UnsafeMutableRawBufferPointer
    private let library: KernelLibrary

    init(in library: KernelLibrary, on device: KernelDevice) throws {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 16384, alignment: 16384)
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        nonisolated(unsafe) let owned = memory
        tensor = try Tensor.wrapping(memory, shape: [1], dtype: .uint32, on: device) { owned.deallocate() }
        self.memory = memory
        self.library = library
    }

    /// Records work that waits for the gate, then sets the only element to 1, or to 0 if the gate stays closed too
    /// long.
    func pass(_ element: Tensor, _ step: KernelEncoder) throws {
        try step.dispatch(
            "passGate", in: library, buffers: [.read(tensor, at: 0), .write(element, at: 1)], threads: GridSize(1))
    }

    func open() { memory.storeBytes(of: 1, as: UInt32.self) }

    /// Opens the gate a little later, on a thread that does not depend on the waiting caller.
    func openSoon() {
        Thread.detachNewThread {
            Thread.sleep(forTimeInterval: 0.05)
            self.open()
        }
    }
}
