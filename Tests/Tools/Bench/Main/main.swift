import BenchSupport
import Foundation
// Links the core, which the benchmark calls from C++.
import MLXNativeKernelsCore

exit(bench_run())
