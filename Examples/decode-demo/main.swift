import Foundation
import JargonLM
import MLXNativeKernels
import MLXNativeKernelsHost

/// Prints an error to standard error.
func complain(_ message: String) { try? sink(.standardError)("decode-demo: \(message)\n") }

func explain(_ error: any Error) -> String {
    switch error {
    case let error as KernelError: "\(error)"
    case let error as ModelError: "\(error)"
    default: error.localizedDescription
    }
}

keepStreamsApart()
registerHostDevice()
do {
    let arguments = try Arguments(parsing: Array(CommandLine.arguments.dropFirst()))
    if arguments.wantsHelp {
        try Terminal().line(Arguments.help)
    } else if arguments.listsDevices {
        try Terminal().line(deviceList())
    } else {
        var demo = try DecodeDemo(arguments)
        try demo.run()
    }
} catch let error as BadArgument {
    complain("\(error.message)\nTry decode-demo --help")
    exit(2)
} catch is Interruption.Interrupted {
    complain("interrupted")
    exit(130)
} catch let error as OutputFailure {
    if !error.isUnwanted { complain(error.message) }
    exit(1)
} catch {
    complain(explain(error))
    exit(1)
}
