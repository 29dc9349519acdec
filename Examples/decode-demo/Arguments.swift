import MLXNativeKernels

/// What the command line asks for.
struct Arguments {
    var tokens = 20
    var capacity = 12
    var heads = 2
    var headDim = 64
    var dtype = ElementType.float16
    var pinned: Int?
    var isLinear = false
    var seed: UInt64 = 1
    var isQuiet = false
    var wantsHelp = false

    /// Positions that stay for ever, where nothing was asked for: two, if that leaves a slot to turn.
    var pinnedOrDefault: Int { pinned ?? (isLinear ? 0 : min(2, capacity - 1)) }

    static let help = """
        Fills a cache of keys and values token by token, draws its slots, and checks what is stored.

        usage: decode-demo [options]

          --tokens N      tokens to append, 0 to 1000000 (20)
          --capacity N    slots of the cache, 1 to 1000000 (12)
          --heads N       heads of keys and values, 1 to 1024 (2)
          --head-dim N    elements of one head, 1 to 4096 (64)
          --dtype T       how numbers are stored: f32, f16 or bf16 (f16)
          --pin N         first positions that are never overwritten, fewer than the capacity (2)
          --linear        do not overwrite: the first token that does not fit is an error
          --seed N        seed of the made-up keys and values (1)
          --quiet         no drawing, only the summary
          --help          this text

        exit status: 0 all stored and checked, 1 a token was refused or a check failed, 2 bad arguments
        """
}

/// An argument that cannot be used.
struct BadArgument: Error {
    let message: String
}

extension Arguments {
    init(parsing words: [String]) throws(BadArgument) {
        var rest = words[...]
        while let option = rest.popFirst() {
            switch option {
            case "--tokens": tokens = try Self.number(option, rest.popFirst(), 0...1_000_000)
            case "--capacity": capacity = try Self.number(option, rest.popFirst(), 1...1_000_000)
            case "--heads": heads = try Self.number(option, rest.popFirst(), 1...1024)
            case "--head-dim": headDim = try Self.number(option, rest.popFirst(), 1...4096)
            case "--dtype": dtype = try Self.elementType(option, rest.popFirst())
            case "--pin": pinned = try Self.number(option, rest.popFirst(), 0...1_000_000)
            case "--linear": isLinear = true
            case "--seed": seed = try Self.number(option, rest.popFirst(), 0...UInt64.max)
            case "--quiet": isQuiet = true
            case "--help", "-h": wantsHelp = true
            default: throw BadArgument(message: "\(option) is not an option")
            }
        }
        if let pinned, isLinear, pinned > 0 {
            throw BadArgument(message: "--pin has no meaning with --linear, which never overwrites")
        }
        if pinnedOrDefault >= capacity {
            throw BadArgument(message: "--pin \(pinnedOrDefault) leaves no slot to turn in a capacity of \(capacity)")
        }
    }

    private static func number<Number: FixedWidthInteger>(
        _ option: String, _ word: String?, _ allowed: ClosedRange<Number>
    ) throws(BadArgument) -> Number {
        let word = try value(option, word, "a number")
        guard let number = Number(word), allowed.contains(number) else {
            throw BadArgument(
                message: "\(option) takes a number from \(allowed.lowerBound) to \(allowed.upperBound), not \(word)")
        }
        return number
    }

    private static func elementType(_ option: String, _ word: String?) throws(BadArgument) -> ElementType {
        let word = try value(option, word, "f32, f16 or bf16")
        guard let type = ElementType.allCases.first(where: { $0.isFloatingPoint && $0.description == word }) else {
            throw BadArgument(message: "\(option) takes f32, f16 or bf16, not \(word)")
        }
        return type
    }

    private static func value(
        _ option: String, _ word: String?, _ wanted: String
    ) throws(BadArgument) -> String {
        guard let word else { throw BadArgument(message: "\(option) needs a value: \(wanted)") }
        return word
    }
}
