#if SWIFT_PACKAGE
    internal import MLXNativeKernelsCore
#endif

/// The type's name and the fields that hold something: `AttendedSequence(sequence: 0, length: 3)`. Fields that have the
/// value of `defaults` are left out.
private func fieldsText(_ value: Any, defaults: Any? = nil) -> String {
    let usual = defaults.map { Set(fieldTexts($0)) } ?? []
    let fields = fieldTexts(value).filter { !usual.contains($0) }
    return "\(type(of: value))(\(fields.joined(separator: ", ")))"
}

private func fieldTexts(_ value: Any) -> [String] {
    Mirror(reflecting: value).children.compactMap { field -> String? in
        let held = Mirror(reflecting: field.value)
        guard let name = field.label else { return nil }
        switch held.displayStyle {
        case .optional: return held.children.first.map { "\(name): \($0.value)" }
        case .collection where held.children.isEmpty: return nil
        case .collection where held.children.count > 8: return "\(name): \(held.children.count) elements"
        default: return "\(name): \(field.value)"
        }
    }
}

// Types that print well without a description of their own, such as `SlidingWindow`, are not listed.

extension AttendedSequence: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension AttentionCache.Calibration: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension FlashDecode: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension Hadamard: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension HeadsView: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension HostOptions: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension KVCacheDequantize: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension KVCacheQuantize: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension KVCacheView: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension KVCacheWrite: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension KVQuantizeOptions: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension MergePartials: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension MultiRoPE: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension QuantizedKVCacheView: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension QuantizedKVPlane: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension RotaryEmbedding: CustomStringConvertible { public var description: String { fieldsText(self) } }
extension RotaryStep: CustomStringConvertible { public var description: String { fieldsText(self) } }

extension AttentionOptions: CustomStringConvertible {
    /// The options that are not at their defaults: `AttentionOptions(window: 1024)`.
    public var description: String { fieldsText(self, defaults: AttentionOptions()) }
}

extension AttentionCache.WhenFull: CustomStringConvertible {
    /// As it is written: `fail`, `overwriteOldest` or `overwriteOldest(keepingFirst: 4)`.
    public var description: String {
        switch (wrap, pinned) {
        case (.linear, _): "fail"
        case (.ring, 0): "overwriteOldest"
        case (.ring, _): "overwriteOldest(keepingFirst: \(pinned))"
        }
    }
}

extension KVCodec: CustomStringConvertible {
    /// Name and bits, and the scale factor if it is not 1: `turbo, 4 bits`.
    public var description: String {
        "\(name), \(bits.rawValue) bits" + (scaleFactor == 1 ? "" : ", scale factor \(scaleFactor)")
    }
}

extension KernelBuffer: CustomStringConvertible {
    /// Access, tensor and index: `read f32 [4] at 0`.
    public var description: String {
        let name =
            switch access {
            case .MNK_READ: "read"
            case .MNK_WRITE: "write"
            default: "readWrite"
            }
        return "\(name) \(tensor) at \(index)"
    }
}

extension InlineBytes: CustomStringConvertible {
    /// Size and index: `4 bytes at 2`.
    public var description: String { "\(bytes.count) bytes at \(index)" }
}

extension FunctionConstant: CustomStringConvertible {
    /// Value and index: `true at 0`.
    public var description: String {
        switch type {
        case .MNK_CONSTANT_BOOL: "\(bits != 0) at \(index)"
        case .MNK_CONSTANT_I32: "\(Int32(bitPattern: bits)) at \(index)"
        case .MNK_CONSTANT_F32: "\(Float(bitPattern: bits)) at \(index)"
        default: "\(bits) at \(index)"
        }
    }
}

extension RecordedStep: CustomStringConvertible {
    /// The recorded work: `RecordedStep(2 dispatches, …)`.
    public var description: String { "RecordedStep(\(summary))" }
}

extension Completion: CustomStringConvertible {
    /// The submitted work: `Completion(2 dispatches, …)`.
    public var description: String { "Completion(\(summary))" }
}

extension KernelEncoder: CustomStringConvertible {
    /// Whether calls can still be recorded.
    public var description: String { "KernelEncoder(\(isOpen ? "open" : "ended"))" }
}

extension KernelLibrary: CustomStringConvertible {
    /// How many functions it has, and where they come from.
    public var description: String { "KernelLibrary(\(functionNames.count) functions, \(origin))" }
}
