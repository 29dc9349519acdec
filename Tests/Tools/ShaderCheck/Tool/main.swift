// shader-check [options] FILE...
import Foundation
import ShaderCheck

let usage = """
    usage: shader-check [--all] [--tests] [--clang PATH] FILE...
    Says whether Apple's Metal compiler would accept these files, as far as that can be told without it.
      --all         the files are all that ship: a row of functions.tsv that none of them uses is a finding
      --tests       texts of tests: they may use the functions of test-functions.tsv as well
      --clang PATH  the compiler, instead of the first clang on PATH
    """

func stop(_ message: String) -> Never {
    FileHandle.standardError.write(Data((message + "\n").utf8))
    exit(2)
}

func counted(_ number: Int, _ thing: String) -> String { "\(number) \(thing)\(number == 1 ? "" : "s")" }

var (files, shipsAll, forTests, clang): ([String], Bool, Bool, String?) = ([], false, false, nil)
var arguments = CommandLine.arguments.dropFirst()
while let argument = arguments.popFirst() {
    switch argument {
    case "--all": shipsAll = true
    case "--tests": forTests = true
    case "--clang":
        guard let path = arguments.popFirst() else { stop("--clang lacks the path of a compiler.\n\(usage)") }
        clang = path
    case "--help", "-h":
        print(usage)
        exit(0)
    case _ where argument.hasPrefix("-"): stop("unknown option \(argument).\n\(usage)")
    default: files.append(argument)
    }
}
if files.isEmpty { stop(usage) }

do {
    let layout = Layout()
    let list = try FunctionList(tables: [layout.functions] + (forTests ? [layout.testFunctions] : []))
    let checker = try ShaderChecker(layout: layout, list: list, clang: clang)
    let report = try checker.check(files)
    let findings = report.findings + (shipsAll ? checker.unusedRows(report) : [])
    for finding in findings { print(finding) }
    let summary = [
        counted(report.files, "file"), counted(report.exports.count, "exported kernel"),
        counted(report.usedRows.count, "function") + " of the list",
    ].joined(separator: ", ")
    print("shader-check: \(summary): \(findings.isEmpty ? "accepted" : counted(findings.count, "finding"))")
    exit(findings.isEmpty ? 0 : 1)
} catch {
    stop("shader-check: \(error)")
}
