#if canImport(ObjectiveC)
    public import Foundation
    #if SWIFT_PACKAGE
        public import MLXNativeKernelsCore
    #endif

    // The classes of Objective-C are over the same core, so an object of either language can be made from the other's
    // without copying memory: an initializer takes the Objective-C object, and a property returns one.
    //
    // Linux has no Objective-C for Swift. There this file is type-checked, against the framework's own headers and
    // stubs of Apple's declarations; it has not been run.

    extension KernelDevice {
        /// The same device as the Objective-C object.
        ///
        /// - Throws: ``KernelError`` if memory runs out.
        public convenience init(_ device: MNKDevice) throws(KernelError) {
            let pointer = try translatingErrors { try device.makeHandle() }
            try self.init { _ in pointer }
        }

        /// The same device for Objective-C, as a new object.
        ///
        /// - Throws: ``KernelError`` if memory runs out.
        public var mnkDevice: MNKDevice {
            get throws(KernelError) { try translatingErrors { try MNKDevice(handle: handle.pointer) } }
        }
    }

    extension Tensor {
        /// The same memory as the Objective-C object.
        ///
        /// - Throws: ``KernelError`` if memory runs out.
        public convenience init(_ tensor: MNKTensor) throws(KernelError) {
            let pointer = try translatingErrors { try tensor.makeHandle() }
            try self.init { _ in pointer }
        }

        /// The same memory for Objective-C, as a new object, which is equal to others of this tensor.
        ///
        /// - Throws: ``KernelError`` if memory runs out.
        public var mnkTensor: MNKTensor {
            get throws(KernelError) { try translatingErrors { try MNKTensor(handle: handle.pointer) } }
        }
    }

    extension AttentionCache {
        /// The same cache as the Objective-C object: what one appends the other holds.
        ///
        /// - Throws: ``KernelError`` if memory runs out.
        public convenience init(_ cache: MNKAttentionCache) throws(KernelError) {
            let pointer = try translatingErrors { try cache.makeHandle() }
            try self.init(Handle(mnk_cache_release) { _ in pointer })
        }

        /// The same cache for Objective-C, as a new object.
        ///
        /// - Throws: ``KernelError`` if memory runs out.
        public var mnkAttentionCache: MNKAttentionCache {
            get throws(KernelError) { try translatingErrors { try MNKAttentionCache(handle: handle.pointer) } }
        }
    }

    extension KernelError {
        /// An error of the Objective-C classes, with all its parts; `nil` for one of another domain.
        public init?(_ error: NSError) {
            // Swift makes an enum of C of any number, which then has no case.
            let known = mnk_error_code.MNK_INVALID_ARGUMENT.rawValue...mnk_error_code.MNK_WOULD_DEADLOCK.rawValue
            guard error.domain == MNKErrorDomain, let number = UInt32(exactly: error.code), known.contains(number),
                let code = mnk_error_code(rawValue: number)
            else { return nil }
            func part(_ key: String) -> String { error.userInfo[key] as? String ?? "" }
            self.init(
                code: Code(code), op: part(MNKErrorOpKey), what: part(MNKErrorWhatKey), got: part(MNKErrorGotKey),
                expected: part(MNKErrorExpectedKey), fix: part(MNKErrorFixKey),
                isRetryable: error.userInfo[MNKErrorIsRetryableKey] as? Bool ?? false)
        }
    }

    /// Calls a method of an Objective-C class.
    private func translatingErrors<Value>(_ body: () throws -> Value) throws(KernelError) -> Value {
        do {
            return try body()
        } catch {
            throw KernelError(error as NSError)
                ?? .invalid(
                    op: "MLXNativeKernels", what: "a call failed outside of this library",
                    got: error.localizedDescription, expected: "an error of this library", fix: "Please report this.")
        }
    }
#endif
