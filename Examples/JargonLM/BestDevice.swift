import MLXNativeKernels
import MLXNativeKernelsHost

/// The default device or, where the GPU lacks what the kernels need, as in a simulator or a virtual machine, the Host
/// device.
///
/// - Parameter whenUnsupported: Called with what the GPU lacks when the Host device takes its place.
/// - Throws: ``KernelError`` if there is neither.
public func bestDevice(whenUnsupported: (KernelError) -> Void = { _ in }) throws -> KernelDevice {
    do {
        return try KernelDevice.default()
    } catch let error where error.code == .unsupported {
        registerHostDevice()
        let host = try KernelDevice.host()
        whenUnsupported(error)
        return host
    }
}
