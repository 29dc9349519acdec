#if canImport(Metal)
    public import Metal
    #if SWIFT_PACKAGE
        internal import MLXNativeKernelsCore
    #endif

    extension KernelDevice {
        /// A device over the app's Metal objects.
        ///
        /// - Parameters:
        ///   - device: The GPU.
        ///   - queue: Where work is submitted; without one the device makes its own.
        ///   - libraryPath: The compiled kernels of this package; without it they are searched for.
        ///   - describesDispatches: Puts a debug group around each dispatch that names its op and the bytes it reads
        ///     and writes, for captures in Xcode.
        ///   - usesEmbeddedText: Compiles the kernels from the text in this package, whatever else there is.
        /// - Throws: ``KernelError`` with the code `unsupported` that names what the GPU lacks.
        public convenience init(
            _ device: any MTLDevice, queue: (any MTLCommandQueue)? = nil, libraryPath: String? = nil,
            describesDispatches: Bool = false, usesEmbeddedText: Bool = false
        ) throws(KernelError) {
            let memory = CallMemory()
            defer { withExtendedLifetime(memory) {} }
            var options = mnk_metal_options(
                device: borrowed(device),
                queue: queue.map { borrowed($0) }, library_path: memory.keep(libraryPath),
                describes_dispatches: describesDispatches, uses_embedded_text: usesEmbeddedText)
            try self.init { mnk_device_make_metal(&options, $0) }
        }

        /// The GPU; nil for a device of another kind.
        public var mtlDevice: (any MTLDevice)? {
            object(mnk_device_metal_device(handle.pointer)) as? any MTLDevice
        }

        /// What distinguishes GPUs in Metal; nil for a device of another kind.
        var registryID: UInt64? { mtlDevice?.registryID }

        /// Where work is submitted; nil for a device of another kind.
        public var mtlCommandQueue: (any MTLCommandQueue)? {
            object(mnk_device_metal_queue(handle.pointer)) as? any MTLCommandQueue
        }

        /// Records the closure's work into a command buffer that the app commits itself.
        ///
        /// Everything is encoded when the closure returns, as one compute encoder; no other encoder of the command
        /// buffer may be open then. When the closure throws, the command buffer is untouched. The work is done when
        /// the command buffer is, and its time is that of all the command buffer; one that is released without a
        /// commit fails. Until the app commits it, ``Completion/wait()`` does not return, and reading or writing what the
        /// work touches throws ``KernelError/Code/wouldDeadlock``.
        ///
        /// - Throws: What `body` throws, or ``KernelError`` if the command buffer cannot be used.
        @discardableResult
        public func encode(
            into commandBuffer: any MTLCommandBuffer, label: String = "", _ body: (KernelEncoder) throws -> Void
        ) throws -> Completion {
            let step = try KernelEncoder {
                mnk_encoder_make_into_metal(handle.pointer, borrowed(commandBuffer), label, $0)
            }
            return try step.committed(after: body)
        }
    }

    extension RecordedStep {
        /// Records the step into a command buffer that the app commits itself, as
        /// ``KernelDevice/encode(into:label:_:)`` does.
        ///
        /// - Throws: ``KernelError`` if a call no longer fits, or the command buffer cannot be used.
        @discardableResult
        public func run(into commandBuffer: any MTLCommandBuffer, label: String = "") throws -> Completion {
            try device.encode(into: commandBuffer, label: label) { try $0.encode(self) }
        }
    }

    extension Tensor {
        /// A tensor over the app's Metal buffer, without a copy.
        ///
        /// What the app does with the buffer is not checked: using its contents does not wait for submitted work, and the
        /// app's own work on it is not waited for.
        ///
        /// - Throws: ``KernelError`` if the tensor is not inside the buffer, or the buffer is another device's.
        public static func wrapping(
            _ buffer: any MTLBuffer, offset: Int = 0, shape: [Int], dtype: ElementType, on device: KernelDevice
        ) throws(KernelError) -> Tensor {
            let extents = try extents(shape, op: "Tensor")
            let start = try UInt64(offset, "offset", op: "Tensor")
            return try Tensor {
                mnk_tensor_make_over_metal_buffer(
                    device.handle.pointer, borrowed(buffer), dtype.code, extents, extents.count, start, $0)
            }
        }

        /// The Metal buffer that holds it, from ``byteOffset`` on; nil for a tensor of another device.
        ///
        /// Its contents are not checked: using them does not wait for submitted work, does not report that such work
        /// failed, and does not count as writing them again.
        public var mtlBuffer: (any MTLBuffer)? { object(mnk_tensor_metal_buffer(handle.pointer)) as? any MTLBuffer }
    }

    /// As the C API takes objects.
    private func borrowed(_ object: AnyObject) -> UnsafeMutableRawPointer {
        Unmanaged.passUnretained(object).toOpaque()
    }

    /// As the C API gives them.
    private func object(_ pointer: UnsafeMutableRawPointer?) -> AnyObject? {
        pointer.map { Unmanaged<AnyObject>.fromOpaque($0).takeUnretainedValue() }
    }
#endif
