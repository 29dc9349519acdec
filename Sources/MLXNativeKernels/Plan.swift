#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// What an op would run. It can be recorded later, and keeps the op's tensors.
///
/// ```swift
/// let plan = try KVCacheWrite(keys: k, values: v, into: view, at: 12).plan()
/// print(plan)
/// plan.dispatches[0].bytesWritten
/// ```
public struct Plan: Sendable {
    /// One kernel launch.
    public struct Dispatch: Sendable, Hashable {
        /// The kernel's name.
        public let function: String
        /// Threads, or threadgroups, along three axes.
        public let grid: GridSize
        /// Bytes that it reads.
        public let bytesRead: Int
        /// Bytes that it writes.
        public let bytesWritten: Int
    }

    /// The launches, in order. Empty work has none.
    public let dispatches: [Dispatch]
    /// Bytes of temporary memory.
    public let scratchBytes: Int
    /// The plan as text, a line for each launch.
    public let description: String

    let handle: Handle

    init(_ make: (ErrorOut) -> OpaquePointer?) throws(KernelError) {
        let plan = try Handle(mnk_plan_release, make)
        handle = plan
        dispatches = (0..<mnk_plan_dispatch_count(plan.pointer)).map { index in
            let dispatch = mnk_plan_dispatch(plan.pointer, index)
            return Dispatch(
                function: String(cString: dispatch.function), grid: GridSize(dispatch.grid),
                bytesRead: Int(clamping: dispatch.bytes_read), bytesWritten: Int(clamping: dispatch.bytes_written))
        }
        scratchBytes = Int(clamping: mnk_plan_scratch_bytes(plan.pointer))
        description = String(cString: mnk_plan_text(plan.pointer))
    }
}

extension Plan: CustomStringConvertible {}
