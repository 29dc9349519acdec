import Foundation
import JargonLM
import MLXNativeKernels

func complain(_ message: String) {
    FileHandle.standardError.write(Data((message + "\n").utf8))
}

func explain(_ error: any Error) -> String {
    switch error {
    case let error as KernelError: "\(error)"
    case let error as ModelError: "\(error)"
    default: error.localizedDescription
    }
}

do {
    let arguments = try Arguments(parsing: Array(CommandLine.arguments.dropFirst()))
    if arguments.wantsHelp {
        print(Arguments.help)
    } else if arguments.listsDevices {
        print(deviceList())
    } else {
        var demo = try DecodeDemo(arguments)
        try demo.run()
    }
} catch let error as BadArgument {
    complain("decode-demo: \(error.message)\nTry decode-demo --help")
    exit(2)
} catch is Interruption.Interrupted {
    complain("decode-demo: interrupted")
    exit(130)
} catch {
    complain("decode-demo: \(explain(error))")
    exit(1)
}
