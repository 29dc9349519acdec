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
        var bindings: [mnk_binding] = []
        for buffer in buffers { bindings.append(try buffer.binding(op: function)) }
        var threadgroupMemory: [mnk_threadgroup_memory] = []
        for item in memory { threadgroupMemory.append(try item.descriptor(op: function)) }
        var functionConstants: [mnk_constant] = []
        for constant in constants { functionConstants.append(try constant.descriptor(op: function)) }
        // All inline bytes in one block, so that one pointer keeps them alive during the call.
        let inlineBlock = inline.flatMap(\.bytes)
        var inlineIndices: [UInt32] = []
        for item in inline { inlineIndices.append(try UInt32(item.index, "an inline index", op: function)) }

        try record { encoder, error in
            inlineBlock.withUnsafeBytes { block in
                var offset = 0
                let inlines = zip(inline, inlineIndices).map { item, index in
                    defer { offset += item.bytes.count }
                    // An item without bytes still needs an address that is not null.
                    let start = block.baseAddress ?? UnsafeRawPointer(bitPattern: 1)!
                    return mnk_inline_bytes(
                        index: index, bytes: start + offset, count: item.bytes.count, is_value: item.isValue)
                }
                return function.withCString { function in
                    kind.withCString { kind in
                        bindings.withUnsafeBufferPointer { bindings in
                            inlines.withUnsafeBufferPointer { inlines in
                                threadgroupMemory.withUnsafeBufferPointer { memory in
                                    functionConstants.withUnsafeBufferPointer { constants in
                                        var dispatch = mnk_dispatch(
                                            library: library?.handle.pointer, function: function, kind: kind,
                                            buffers: bindings.listAddress, buffer_count: bindings.count,
                                            inlines: inlines.listAddress, inline_count: inlines.count,
                                            threadgroup_memory: memory.listAddress,
                                            threadgroup_memory_count: memory.count,
                                            constants: constants.listAddress, constant_count: constants.count,
                                            grid: gridExtents, threadgroup: groupExtents,
                                            grid_is_threadgroups: gridIsThreadgroups)
                                        return mnk_encoder_dispatch(encoder, &dispatch, error)
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
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
