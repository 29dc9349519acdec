import BenchSupport
import Foundation
// Links the core, which the benchmark calls from C++.
import MLXNativeKernelsCore
import MLXNativeKernelsHost

registerHostDevice()
exit(bench_run(CommandLine.argc, CommandLine.unsafeArgv))
