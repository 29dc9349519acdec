// Runs the C++ tests without XCTest, from swift build's objects.
import Foundation
import MLXNativeKernelsCoreTests

exit(core_test_program(CommandLine.argc, CommandLine.unsafeArgv))
