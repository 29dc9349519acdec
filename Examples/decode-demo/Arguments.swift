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
    /// Bytes of the passage to compare storages on. The default is the whole passage, which takes a minute on two cores.
    var passage = 1024
    /// The storages to compare.
    var table = StorageChoice.compared
    var listsDevices = false
    var wantsHelp = false

    static let help = """
        Writes text with a small language model whose rotary embedding, caches and attention run as this
        package's kernels, then compares the cost of keys and values in each storage.

        usage: decode-demo [options]

          --prompt TEXT      the text to continue; \\n is a newline ("\\nkernel\\n")
          --tokens N         bytes to write, 0 to 1024 (290), but no more than the model's context holds
          --storage S        storage of keys and values (4-bit):
                             \(StorageChoice.all.map(\.name).joined(separator: ", ")),
                             or k5v4 for 5-bit keys and 4-bit values; "-bit" is optional
          --device D         a kind or number from --list-devices (the first)
          --seed N           random seed; the same seed writes the same text (5)
          --temperature T    0 takes the most likely byte, 1 samples the model's distribution (0.65)
          --top-p P          samples from the most likely bytes with this total probability (0.95)
          --table S,S,…      storages to compare
                             (\(StorageChoice.compared.map(\.name).joined(separator: ",")))
          --passage N        bytes to compare them on, 1 to 1024 (1024)
          --no-table         writes text only
          --report FILE      writes an HTML page with plots to a new file, or over a plain one
          --list-devices     lists the devices that can run the kernels
          --help             prints this help

        exit status: 0 success, 1 failure, 2 invalid arguments, 130 interrupted
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
            case "--prompt": prompt = unescaped(try Self.value(option, rest.popFirst(), "text"))
            case "--tokens": tokens = try Self.number(option, rest.popFirst(), 0...1024)
            case "--storage": storage = try Self.storage(option, rest.popFirst())
            case "--device": device = try Self.value(option, rest.popFirst(), "a device kind or number")
            case "--seed": seed = try Self.number(option, rest.popFirst(), 0...UInt64.max)
            case "--temperature": temperature = try Self.number(option, rest.popFirst(), 0...100)
            case "--top-p": topP = try Self.number(option, rest.popFirst(), 0.0001...1)
            case "--report": report = try Self.value(option, rest.popFirst(), "a file")
            case "--table": table = try Self.storages(option, rest.popFirst())
            case "--passage": passage = try Self.number(option, rest.popFirst(), 1...1024)
            case "--no-table": table = []
            case "--list-devices": listsDevices = true
            case "--help", "-h": wantsHelp = true
            default: throw BadArgument(message: "unknown option \(option)")
            }
        }
        if report != nil && table.isEmpty {
            throw BadArgument(message: "--report needs storages to compare; remove --no-table")
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
        let word = try value(option, word, "storages separated by commas")
        var storages: [StorageChoice] = []
        for part in word.split(separator: ",", omittingEmptySubsequences: false) {
            guard !part.isEmpty else {
                throw BadArgument(message: "\(option) takes storages separated by commas, not \"\(word)\"")
            }
            let next = try storage(option, String(part))
            guard !storages.contains(next) else {
                throw BadArgument(message: "\(option) lists \(next.name) twice")
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
