// Code that both benchmarks share.
import BenchSupport
import DecodeBenchSupport
import Foundation
// Links the core, which the benchmark calls from C++.
import MLXNativeKernelsCore
import MLXNativeKernelsHost

registerHostDevice()
exit(decode_bench_run(CommandLine.argc, CommandLine.unsafeArgv))
