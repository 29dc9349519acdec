import Foundation
import JargonLM
import XCTest

@testable import decode_demo

/// The files of a report. Only plain files are written, and nothing else is replaced.
final class ReportFileTests: XCTestCase {
    private var folder = ""

    override func setUpWithError() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("report-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    override func tearDown() { try? FileManager.default.removeItem(atPath: folder) }

    private func path(_ name: String) -> String { "\(folder)/\(name)" }

    private func text(_ name: String) -> String? {
        FileManager.default.contents(atPath: path(name)).map { String(decoding: $0, as: UTF8.self) }
    }

    private func mode(_ name: String) -> mode_t? {
        var info = stat()
        return lstat(path(name), &info) == 0 ? info.st_mode : nil
    }

    private func assertRefused(_ name: String, file: StaticString = #filePath, line: UInt = #line) {
        XCTAssertThrowsError(try ReportFile(name), name, file: file, line: line) { error in
            XCTAssertEqual((error as? ModelError)?.code, .invalidArgument, file: file, line: line)
            XCTAssertEqual((error as? ModelError)?.got, name, file: file, line: line)
        }
    }

    func testANewFile() throws {
        let report = try ReportFile(path("new"))
        XCTAssertNil(mode("new"), "nothing is made before there is a report")
        try report.write("page")
        XCTAssertEqual(text("new"), "page")
    }

    func testAnExistingFileKeepsItsMode() throws {
        _ = FileManager.default.createFile(atPath: path("old"), contents: Data("a longer text".utf8))
        chmod(path("old"), 0o640)
        let before = try FileManager.default.attributesOfItem(atPath: path("old"))[.systemFileNumber] as? UInt64
        try ReportFile(path("old")).write("page")
        XCTAssertEqual(text("old"), "page")
        XCTAssertEqual(mode("old"), S_IFREG | 0o640)
        XCTAssertEqual(
            try FileManager.default.attributesOfItem(atPath: path("old"))[.systemFileNumber] as? UInt64, before)
    }

    func testLinksAreFollowed() throws {
        _ = FileManager.default.createFile(atPath: path("target"), contents: Data())
        symlink("target", path("near"))
        symlink(path("near"), path("far"))
        symlink("not-yet", path("dangling"))
        for (link, target) in [("near", "target"), ("far", "target"), ("dangling", "not-yet")] {
            try ReportFile(path(link)).write("by \(link)")
            XCTAssertEqual(text(target), "by \(link)")
            XCTAssertEqual(mode(link).map { $0 & S_IFMT }, S_IFLNK)
        }
        symlink("round", path("round"))
        symlink("/nowhere/report.html", path("astray"))
        symlink("/dev/null", path("device"))
        for link in ["round", "astray", "device", "near/", "dangling/"] { assertRefused(path(link)) }
    }

    func testOnlyPlainFilesAreAccepted() throws {
        mkfifo(path("pipe"), 0o600)
        _ = FileManager.default.createFile(atPath: path("file"), contents: Data("kept".utf8))
        for name in [
            "", "/", "/dev/null", "/nowhere/report.html", folder, folder + "/", path("pipe"), path("new/"),
            path("file/"), path("file/below"),
        ] { assertRefused(name) }
        XCTAssertEqual(mode("pipe").map { $0 & S_IFMT }, S_IFIFO)
        XCTAssertEqual(text("file"), "kept")
        XCTAssertNil(mode("new"))
    }

    func testUnwritableFilesAreRefused() throws {
        try XCTSkipIf(getuid() == 0, "the root user may write everywhere")
        _ = FileManager.default.createFile(atPath: path("locked"), contents: nil)
        chmod(path("locked"), 0o400)
        assertRefused(path("locked"))
    }

    func testALaterPipeIsNotWritten() throws {
        let report = try ReportFile(path("late"))
        mkfifo(path("late"), 0o600)
        XCTAssertThrowsError(try report.write("page"))
        // A pipe with a reader can be opened.
        let reader = open(path("late"), O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        XCTAssertThrowsError(try report.write("page"))
        var byte: UInt8 = 0
        XCTAssertEqual(read(reader, &byte, 1), 0)
    }
}
