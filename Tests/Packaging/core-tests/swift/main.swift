// Runs the C++ tests without XCTest, from the objects that swift build made.
import Foundation
import MLXNativeKernelsCoreTests

exit(core_test_program(CommandLine.argc, CommandLine.unsafeArgv))
