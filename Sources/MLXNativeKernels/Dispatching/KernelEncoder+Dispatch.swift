#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

extension KernelEncoder {
    /// Records one launch of the caller's own kernel over exactly these threads.
    ///
    /// ```swift
    /// try step.dispatch(
    ///     "scale", in: library, buffers: [.read(x, at: 0), .write(y, at: 1)], inline: [.value(Float(0.5), at: 2)],
    ///     threads: GridSize(x.count))
    /// ```
    ///
    /// - Parameters:
    ///   - function: The kernel's name.
    ///   - library: Where it is; `nil` means the kernels that this package ships.
    ///   - buffers: Each tensor with what the kernel does to it; barriers are placed from this.
    ///   - inline: Bytes for `constant` arguments.
    ///   - threadgroupMemory: Sizes of threadgroup arguments.
    ///   - constants: Values of the kernel's function constants.
    ///   - threads: How many, at least 1 on each axis; threadgroups at the edge are smaller if the grid does not divide
    ///     evenly.
    ///   - threadsPerThreadgroup: The size of a group; `nil` lets the encoder choose.
    ///   - kind: Under which ``Summary/counts(ofKind:)`` counts it.
    /// - Throws: ``KernelError`` if an argument is missing or too large, or the kernel cannot be prepared.
    public func dispatch(
        _ function: String, in library: KernelLibrary?, buffers: [KernelBuffer], inline: [InlineBytes] = [],
        threadgroupMemory: [ThreadgroupMemory] = [], constants: [FunctionConstant] = [], threads: GridSize,
        threadsPerThreadgroup: GridSize? = nil, kind: String = "Custom"
    ) throws(KernelError) {
        try dispatch(
            function, library, buffers, inline, threadgroupMemory, constants, grid: threads,
            gridIsThreadgroups: false, threadgroup: threadsPerThreadgroup ?? GridSize(0, 0, 0), kind)
    }

    /// Records one launch of the caller's own kernel over whole threadgroups.
    ///
    /// - Parameters:
    ///   - function: The kernel's name.
    ///   - library: Where it is; `nil` means the kernels that this package ships.
    ///   - buffers: Each tensor with what the kernel does to it; barriers are placed from this.
    ///   - inline: Bytes for `constant` arguments.
    ///   - threadgroupMemory: Sizes of threadgroup arguments.
    ///   - constants: Values of the kernel's function constants.
    ///   - threadgroups: How many, at least 1 on each axis.
    ///   - threadsPerThreadgroup: The size of each.
    ///   - kind: Under which ``Summary/counts(ofKind:)`` counts it.
    /// - Throws: ``KernelError`` if an argument is missing or too large, or the kernel cannot be prepared.
    public func dispatch(
        _ function: String, in library: KernelLibrary?, buffers: [KernelBuffer], inline: [InlineBytes] = [],
        threadgroupMemory: [ThreadgroupMemory] = [], constants: [FunctionConstant] = [], threadgroups: GridSize,
        threadsPerThreadgroup: GridSize, kind: String = "Custom"
    ) throws(KernelError) {
        try dispatch(
            function, library, buffers, inline, threadgroupMemory, constants, grid: threadgroups,
            gridIsThreadgroups: true, threadgroup: threadsPerThreadgroup, kind)
    }

    private func dispatch(
        _ function: String, _ library: KernelLibrary?, _ buffers: [KernelBuffer], _ inline: [InlineBytes],
        _ memory: [ThreadgroupMemory], _ constants: [FunctionConstant], grid: GridSize, gridIsThreadgroups: Bool,
        threadgroup: GridSize, _ kind: String
    ) throws(KernelError) {
        try checkText(function, "the name of the kernel", op: "KernelEncoder.dispatch")
        try checkText(kind, "the kind", op: "KernelEncoder.dispatch")
        let gridExtents = try grid.extents("the grid", op: function)
        let groupExtents = try threadgroup.extents("the threadgroup", op: function)
        let lists = CallMemory()
        defer { withExtendedLifetime(lists) {} }
        let given = mnk_dispatch(
            library: library?.handle.pointer,
            function: lists.keep(function),
            kind: lists.keep(kind),
            buffers: lists.keep(
                try buffers.map { (one) throws(KernelError) in try one.binding(op: function) }),
            buffer_count: buffers.count,
            inlines: lists.keep(
                try inline.map { (one) throws(KernelError) in
                    mnk_inline_bytes(
                        index: try UInt32(one.index, "an inline index", op: function),
                        bytes: lists.copy(of: one.bytes), count: one.bytes.count, is_value: one.isValue)
                }),
            inline_count: inline.count,
            threadgroup_memory: lists.keep(
                try memory.map { (one) throws(KernelError) in try one.descriptor(op: function) }),
            threadgroup_memory_count: memory.count,
            constants: lists.keep(
                try constants.map { (one) throws(KernelError) in try one.descriptor(op: function) }),
            constant_count: constants.count,
            grid: gridExtents,
            threadgroup: groupExtents,
            grid_is_threadgroups: gridIsThreadgroups)
        try record { encoder, error in
            withUnsafePointer(to: given) { mnk_encoder_dispatch(encoder, $0, error) }
        }
        withExtendedLifetime((library, buffers)) {}
    }
}

extension KernelBuffer {
    fileprivate func binding(op: String) throws(KernelError) -> mnk_binding {
        mnk_binding(
            index: try UInt32(index, "a buffer index", op: op), tensor: tensor.handle.pointer, access: access)
    }
}

extension ThreadgroupMemory {
    fileprivate func descriptor(op: String) throws(KernelError) -> mnk_threadgroup_memory {
        mnk_threadgroup_memory(
            index: try UInt32(index, "a threadgroup memory index", op: op),
            bytes: try UInt32(byteCount, "the size of threadgroup memory", op: op))
    }
}

extension FunctionConstant {
    fileprivate func descriptor(op: String) throws(KernelError) -> mnk_constant {
        mnk_constant(index: try UInt32(index, "a constant's index", op: op), type: type, bits: bits)
    }
}
