#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// A device that runs kernels: a GPU, or the processor instead of one.
///
/// Submissions run in the order they are committed. A device may be used from several threads.
///
/// ```swift
/// let device = try KernelDevice.default()
/// let done = try device.encode { step in
///     try step.append(keys: keys, values: values, to: cache)
/// }
/// try done.wait()        // or let the next read of its results wait
/// ```
public final class KernelDevice: Sendable {
    /// What a device runs on.
    public struct Kind: RawRepresentable, Hashable, Sendable {
        /// The processor's cores, running the same kernel source.
        public static let host = Kind(rawValue: "host")
        /// An Apple GPU.
        public static let metal = Kind(rawValue: "metal")

        /// The name of the kind.
        public let rawValue: String
        /// The kind of this name.
        public init(rawValue: String) { self.rawValue = rawValue }
    }

    let handle: Handle

    init(_ make: (ErrorOut) -> OpaquePointer?) throws(KernelError) {
        handle = try Handle(mnk_device_release, make)
    }

    /// The best device here: the GPU on Apple platforms, the Host device elsewhere, or the one that the environment
    /// names (`MNK_DEVICE=host` or `metal`).
    ///
    /// - Throws: ``KernelError`` with the code `unsupported` that names what the GPU lacks, as in a simulator, where
    ///   ``host(_:)`` works for programs that have registered it, or the product that a program must link for `MNK_DEVICE=host`.
    public static func `default`() throws(KernelError) -> KernelDevice {
        try KernelDevice { mnk_device_make_default($0) }
    }

    /// Every available device, the best one first. On Apple platforms the Host device is available to programs that
    /// have registered it, see ``host(_:)``.
    public static var all: [KernelDevice] {
        (0..<mnk_device_count()).compactMap { index in try? KernelDevice { mnk_device_make_at(index, $0) } }
    }

    /// A Host device with its own options.
    ///
    /// On Apple platforms the program must link the product `MLXNativeKernelsHost`, import it and call
    /// `registerHostDevice()` first. On Linux the device is always available.
    ///
    /// - Throws: ``KernelError`` with the code `unsupported` if the program has not registered the device, or if the
    ///   processor or the program lacks the instruction set that the options name.
    public static func host(_ options: HostOptions = HostOptions()) throws(KernelError) -> KernelDevice {
        let memory = CallMemory()
        defer { withExtendedLifetime(memory) {} }
        var given = try options.descriptor(op: "KernelDevice", in: memory)
        return try KernelDevice { mnk_device_make_host(&given, $0) }
    }

    /// What it runs on.
    public var kind: Kind { Kind(rawValue: String(cString: mnk_device_kind(handle.pointer))) }

    /// A human-readable name, such as that of the GPU.
    public var name: String { String(cString: mnk_device_name(handle.pointer)) }

    /// The newest failure of work submitted on this device, for logs; `nil` if there was none.
    public var lastFailure: KernelError? {
        mnk_device_copy_last_failure(handle.pointer).map { KernelError(releasing: $0) }
    }

    /// Releases all compiled kernels, so that a changed file is read again. Kernels in use stay valid.
    public func clearKernels() { mnk_device_clear_kernels(handle.pointer) }

    /// Records the closure's work into one command buffer and submits it when the closure returns.
    ///
    /// Barriers are placed wherever two dispatches touch the same bytes. When the closure throws, the step is
    /// abandoned: nothing runs and no cache advances.
    ///
    /// Nothing runs before the closure has returned. Inside it, writing memory that the step uses throws, and so does
    /// reading memory that the step writes: write before the step, and read after it (<doc:WorkInFlight>). So does
    /// submitting another step that shares memory with this one, unless both only read it.
    ///
    /// - Parameters:
    ///   - label: A name for debuggers and messages.
    ///   - body: Records work on its step. The step ends with the closure; using it later throws.
    /// - Returns: The submitted work.
    /// - Throws: What `body` throws, or ``KernelError`` if the work cannot be submitted.
    @discardableResult
    public func encode(label: String = "", _ body: (KernelEncoder) throws -> Void) throws -> Completion {
        try KernelEncoder { mnk_encoder_make(handle.pointer, label, $0) }.committed(after: body)
    }

    /// Records the closure's work into one command buffer, submits it and suspends until it is done.
    ///
    /// When the closure throws, nothing runs and no cache advances. Canceling the task does not stop submitted work.
    ///
    /// ```swift
    /// let summary = try await device.run { step in
    ///     try step.append(keys: keys, values: values, to: cache)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - label: A name for debuggers and messages.
    ///   - isolation: The caller's actor, on which the closure runs.
    ///   - body: Records work on its step. The step ends with the closure; using it later throws.
    /// - Returns: What was recorded, and the time it took.
    /// - Throws: What `body` throws, or ``KernelError`` if the work cannot be submitted or fails.
    @discardableResult
    public func run(
        label: String = "", isolation: isolated (any Actor)? = #isolation, _ body: (KernelEncoder) throws -> Void
    ) async throws -> Summary {
        try await encode(label: label, body).finished
    }
}

extension KernelDevice: CustomStringConvertible {
    /// Name and kind. A Metal device also names its registry ID, which differs if a Mac has two GPUs of the same name:
    /// `Apple M2 Ultra (metal, registry ID 4294968437)`.
    public var description: String {
        #if canImport(Metal)
            if let registryID { return "\(name) (metal, registry ID \(registryID))" }
        #endif
        return kind == .host ? name : "\(name) (\(kind.rawValue))"
    }
}
