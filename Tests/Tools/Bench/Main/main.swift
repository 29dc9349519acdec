import BenchSupport
import Foundation
import MLXNativeKernels
// Links the core, which the benchmark calls from C++.
import MLXNativeKernelsCore
import MLXNativeKernelsHost

registerHostDevice()
let part = CommandLine.arguments.dropFirst().first
if part != "steps" {
    let status = bench_run(CommandLine.argc, CommandLine.unsafeArgv)
    if status != 0 || part != nil { exit(status) }
}
try benchSteps()
