import Foundation
import MLXNativeKernels

func complain(_ message: String) {
    // What was drawn so far comes first, also where both streams end in one file.
    fflush(nil)
    FileHandle.standardError.write(Data((message + "\n").utf8))
}

func explain(_ error: any Error) -> String {
    guard let error = error as? KernelError else { return "decode-demo: \(error)" }
    return """
        decode-demo: \(error.op): \(error.what)
          code      \(error.code)
          got       \(error.got)
          expected  \(error.expected)
          fix       \(error.fix)
        """
}

let arguments: Arguments
do {
    arguments = try Arguments(parsing: Array(CommandLine.arguments.dropFirst()))
} catch {
    complain("decode-demo: \(error.message)\nTry decode-demo --help")
    exit(2)
}
if arguments.wantsHelp {
    print(Arguments.help)
    exit(0)
}

do {
    var demo = try DecodeDemo(arguments)
    demo.introduce()
    do {
        try demo.run()
    } catch let refusal as KernelError {
        complain("\n" + explain(refusal))
        try demo.conclude()
        exit(1)
    }
    try demo.conclude()
} catch {
    complain(explain(error))
    exit(1)
}
