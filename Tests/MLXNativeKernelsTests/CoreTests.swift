import MLXNativeKernelsCoreTests
import XCTest

/// Runs the C++ tests.
final class CoreTests: XCTestCase {
    override class func setUp() { chooseDevice() }

    func testEveryTestOfTheCorePasses() {
        let tests = (0..<core_test_count()).map { index in
            (index: index, suite: String(cString: core_test_suite(index)), name: String(cString: core_test_name(index)))
        }
        XCTAssertFalse(tests.isEmpty, "no C++ test has registered itself")

        for (suite, members) in Dictionary(grouping: tests, by: \.suite).sorted(by: { $0.key < $1.key }) {
            var failed = 0
            for test in members {
                guard let report = core_test_run(test.index) else { continue }
                failed += 1
                XCTFail("\(suite).\(test.name)\n\(String(cString: report))")
            }
            print("  C++ \(suite): \(members.count) tests, \(failed) failed")
        }
        print("  C++ total: \(tests.count) tests")
    }
}
