import MLXNativeKernels

/// How a session keeps keys and values, with a name for people.
public struct StorageChoice: Sendable, Hashable, Identifiable {
    /// A short name, such as `f16`, `4-bit` or `k5v4`.
    public let name: String
    /// What caches are made with.
    public let storage: AttentionCache.Storage

    public var id: String { name }

    /// Numbers as they are.
    public static let f32 = StorageChoice(name: "f32", storage: .dense(.float32))
    public static let f16 = StorageChoice(name: "f16", storage: .dense(.float16))
    public static let bf16 = StorageChoice(name: "bf16", storage: .dense(.bfloat16))

    /// Keys and values quantized to this number of bits.
    public static func quantized(_ bits: KVCodec.Bits) -> StorageChoice { quantized(keys: bits, values: bits) }

    /// Keys and values quantized to these numbers of bits.
    public static func quantized(keys: KVCodec.Bits, values: KVCodec.Bits) -> StorageChoice {
        StorageChoice(
            name: keys == values ? "\(keys.rawValue)-bit" : "k\(keys.rawValue)v\(values.rawValue)",
            storage: .quantized(.turbo, keys: keys, values: values))
    }

    /// Every choice with as many bits for keys as for values, the largest first.
    public static let all = [f32, f16, bf16] + KVCodec.Bits.allCases.reversed().map(quantized)

    /// Those that are compared with each other.
    public static let compared = [f16] + [.bits8, .bits6, .bits5, .bits4, .bits3].map(quantized)

    /// Whether codes are kept in the place of numbers.
    public var isQuantized: Bool {
        if case .quantized = storage { true } else { false }
    }

    /// The choice of this name, also where `-bit` is left out.
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
