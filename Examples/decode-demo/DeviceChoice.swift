import JargonLM
import MLXNativeKernels

/// The device that an argument selects: a kind, or a number in the list of all devices. Without an argument, the best.
func chosenDevice(_ name: String?) throws -> KernelDevice {
    guard let name else { return try bestDevice { complain("\($0)\nThe kernels run on the CPU instead.") } }
    let all = KernelDevice.all
    if let number = Int(name), all.indices.contains(number) { return all[number] }
    if let device = all.first(where: { $0.kind.rawValue == name.lowercased() }) { return device }
    throw BadArgument(message: "--device takes a kind or number from --list-devices, not \(name)")
}

/// One line for each device.
func deviceList() -> String {
    KernelDevice.all.enumerated()
        .map { "\($0.offset)  \($0.element.kind.rawValue.padded(to: 8))\($0.element.name)" }
        .joined(separator: "\n")
}
