import MLXNativeKernels

/// A named storage of keys and values.
public struct StorageChoice: Sendable, Hashable, Identifiable {
    /// A short name, such as `f16`, `4-bit` or `k5v4`.
    public let name: String
    /// The storage of the caches.
    public let storage: AttentionCache.Storage

    public var id: String { name }

    /// Dense storage.
    public static let f32 = StorageChoice(name: "f32", storage: .dense(.float32))
    public static let f16 = StorageChoice(name: "f16", storage: .dense(.float16))
    public static let bf16 = StorageChoice(name: "bf16", storage: .dense(.bfloat16))

    /// Quantized keys and values with this number of bits.
    public static func quantized(_ bits: KVCodec.Bits) -> StorageChoice { quantized(keys: bits, values: bits) }

    /// Quantized keys and values with these numbers of bits.
    public static func quantized(keys: KVCodec.Bits, values: KVCodec.Bits) -> StorageChoice {
        StorageChoice(
            name: keys == values ? "\(keys.rawValue)-bit" : "k\(keys.rawValue)v\(values.rawValue)",
            storage: .quantized(.turbo, keys: keys, values: values))
    }

    /// All choices with the same number of bits for keys and values, largest first.
    public static let all = [f32, f16, bf16] + KVCodec.Bits.allCases.reversed().map(quantized)

    /// The choices that the demo compares by default.
    public static let compared = [f16] + [.bits8, .bits6, .bits5, .bits4, .bits3].map(quantized)

    /// Whether caches store codes.
    public var isQuantized: Bool {
        if case .quantized = storage { true } else { false }
    }

    /// The choice with this name; `-bit` is optional.
    public init?(named name: String) {
        let mixed = KVCodec.Bits.allCases.flatMap { keys in
            KVCodec.Bits.allCases.map { Self.quantized(keys: keys, values: $0) }
        }
        guard let found = (Self.all + mixed).first(where: { $0.name == name || $0.name == name + "-bit" }) else {
            return nil
        }
        self = found
    }

    private init(name: String, storage: AttentionCache.Storage) {
        self.name = name
        self.storage = storage
    }
}
