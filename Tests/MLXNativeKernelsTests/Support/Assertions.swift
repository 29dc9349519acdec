import MLXNativeKernels
import XCTest

/// Fails unless `body` throws a `KernelError` with this code whose parts contain these texts. No part may be empty: an
/// error reports what is wrong, what was passed, what was expected and how to fix it.
@discardableResult
func assertRefused<Value>(
    _ code: KernelError.Code = .invalidArgument, op: String = "", what: String = "", got: String = "",
    expected: String = "", file: StaticString = #filePath, line: UInt = #line, _ body: () throws -> Value
) -> KernelError? {
    do {
        _ = try body()
        XCTFail("succeeded, expected a KernelError with the code \(code)", file: file, line: line)
        return nil
    } catch let error as KernelError {
        XCTAssertEqual(error.code, code, "\(error)", file: file, line: line)
        let parts = [
            ("op", error.op, op), ("what", error.what, what), ("got", error.got, got),
            ("expected", error.expected, expected), ("fix", error.fix, ""),
        ]
        for (name, text, wanted) in parts {
            XCTAssertFalse(text.isEmpty, "the part \(name) is empty: \(error)", file: file, line: line)
            XCTAssert(
                wanted.isEmpty || text.contains(wanted), "\(name) is \"\(text)\", expected \"\(wanted)\"",
                file: file, line: line)
        }
        return error
    } catch {
        XCTFail("threw \(error), expected a KernelError", file: file, line: line)
        return nil
    }
}

/// Fails at the first differing element and reports its index.
func assertSame<Element: Equatable>(
    _ got: [Element], _ expected: [Element], _ context: @autoclosure () -> String = "",
    file: StaticString = #filePath, line: UInt = #line
) {
    guard got.count == expected.count else {
        XCTFail("\(context()): got \(got.count) elements, expected \(expected.count)", file: file, line: line)
        return
    }
    if let index = got.indices.first(where: { got[$0] != expected[$0] }) {
        XCTFail(
            "\(context()): element \(index) is \(got[index]), expected \(expected[index])", file: file, line: line)
    }
}
