import JargonLM

/// The parsed command line.
struct Arguments: Equatable {
    var prompt = "\nkernel\n"
    var tokens = 290
    var storage = StorageChoice.quantized(.bits4)
    var device: String?
    var seed: UInt64 = 5
    var temperature = 0.65
    var topP = 0.95
    var report: String?
    /// Bytes of the passage to compare storages on. The whole passage takes a minute on two cores.
    var passage = 640
    /// The storages to compare.
    var table = StorageChoice.compared
    var listsDevices = false
    var wantsHelp = false

    static let help = """
        Writes text with a small language model whose rotary embedding, caches and attention run as this package's
        kernels, then compares what its keys and values cost in each storage.

        usage: decode-demo [options]

          --prompt TEXT      what the text begins with; \\n is a new line ("\\nkernel\\n")
          --tokens N         bytes to write, 0 to 1024 (290); the text ends where the model's context does
          --storage S        how keys and values are kept: \(StorageChoice.all.map(\.name).joined(separator: ", "))
                             or, for keys of 5 bits and values of 4, k5v4 (4-bit; "-bit" can be left out)
          --device D         a kind or a number of --list-devices (the first)
          --seed N           the same seed writes the same text (5)
          --temperature T    0 takes the likeliest byte each time; 1 draws by the model's odds (0.65)
          --top-p P          draws from the likeliest bytes of this probability together (0.95)
          --table S,S,…      the storages that are compared (\(StorageChoice.compared.map(\.name).joined(separator: ",")))
          --passage N        how many bytes they are compared on, 1 to 1024 (640)
          --no-table         only writes text
          --report FILE      writes a page with plots, over a plain file or to a new one
          --list-devices     what the kernels can run on here
          --help             this text

        exit status: 0 done, 1 something failed, 2 bad arguments, 130 interrupted
        """
}

/// An invalid argument.
struct BadArgument: Error, Equatable {
    let message: String
}

extension Arguments {
    init(parsing words: [String]) throws(BadArgument) {
        var rest = words[...]
        while let option = rest.popFirst() {
            switch option {
            case "--prompt": prompt = unescaped(try Self.value(option, rest.popFirst(), "a text"))
            case "--tokens": tokens = try Self.number(option, rest.popFirst(), 0...1024)
            case "--storage": storage = try Self.storage(option, rest.popFirst())
            case "--device": device = try Self.value(option, rest.popFirst(), "a kind of device or its number")
            case "--seed": seed = try Self.number(option, rest.popFirst(), 0...UInt64.max)
            case "--temperature": temperature = try Self.number(option, rest.popFirst(), 0...100)
            case "--top-p": topP = try Self.number(option, rest.popFirst(), 0.0001...1)
            case "--report": report = try Self.value(option, rest.popFirst(), "a file")
            case "--table": table = try Self.storages(option, rest.popFirst())
            case "--passage": passage = try Self.number(option, rest.popFirst(), 1...1024)
            case "--no-table": table = []
            case "--list-devices": listsDevices = true
            case "--help", "-h": wantsHelp = true
            default: throw BadArgument(message: "\(option) is not an option")
            }
        }
        if report != nil && table.isEmpty {
            throw BadArgument(message: "--report needs storages to compare; leave --no-table out")
        }
    }

    private static func number<Number: LosslessStringConvertible & Comparable>(
        _ option: String, _ word: String?, _ allowed: ClosedRange<Number>
    ) throws(BadArgument) -> Number {
        let word = try value(option, word, "a number")
        guard let number = Number(word), allowed.contains(number) else {
            throw BadArgument(
                message: "\(option) takes a number from \(allowed.lowerBound) to \(allowed.upperBound), not \(word)")
        }
        return number
    }

    private static func storage(_ option: String, _ word: String?) throws(BadArgument) -> StorageChoice {
        let names = StorageChoice.all.map(\.name).joined(separator: ", ")
        let word = try value(option, word, names)
        guard let storage = StorageChoice(named: word) else {
            throw BadArgument(message: "\(option) takes one of \(names), not \(word)")
        }
        return storage
    }

    private static func storages(_ option: String, _ word: String?) throws(BadArgument) -> [StorageChoice] {
        let word = try value(option, word, "storages with commas between them")
        var storages: [StorageChoice] = []
        for part in word.split(separator: ",", omittingEmptySubsequences: false) {
            guard !part.isEmpty else {
                throw BadArgument(message: "\(option) takes storages with commas between them, not \"\(word)\"")
            }
            let next = try storage(option, String(part))
            guard !storages.contains(next) else {
                throw BadArgument(message: "\(option) takes each storage once, and \(next.name) is there twice")
            }
            storages.append(next)
        }
        return storages
    }

    private static func value(_ option: String, _ word: String?, _ wanted: String) throws(BadArgument) -> String {
        guard let word else { throw BadArgument(message: "\(option) needs a value: \(wanted)") }
        return word
    }
}

/// Converts a backslash and an n to a newline, and two backslashes to one.
func unescaped(_ text: String) -> String {
    var result = ""
    var isEscaped = false
    for character in text {
        if isEscaped {
            result += character == "n" ? "\n" : character == "\\" ? "\\" : "\\\(character)"
            isEscaped = false
        } else if character == "\\" {
            isEscaped = true
        } else {
            result.append(character)
        }
    }
    return isEscaped ? result + "\\" : result
}
