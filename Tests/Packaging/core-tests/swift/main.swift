// Runs the C++ tests without XCTest, from the objects that swift build made.
import CoreTests
import Foundation

exit(core_test_program(CommandLine.argc, CommandLine.unsafeArgv))
