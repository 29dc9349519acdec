import MLXNativeKernels
import MLXNativeKernelsHost

/// The default device, or the Host device if the GPU lacks features that the kernels need, as in a simulator or a
/// virtual machine.
///
/// - Parameter whenUnsupported: Called with the GPU's error if the Host device replaces it.
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

/// The device's name. For the Host device it adds that timings are not a GPU's.
public func deviceDescription(_ device: KernelDevice) -> String {
    device.kind == .host ? "\(device.name): CPU, not a GPU" : device.name
}
