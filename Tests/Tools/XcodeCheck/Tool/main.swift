// xcode-check [ROOT]
import Foundation
import XcodeCheck

let usage = """
    usage: xcode-check [ROOT]
    Says whether Xcode would read Xcode/MLXNativeKernels.xcodeproj and build the package from it, as far as that can be
    told without Xcode.
      ROOT  the repository, instead of the one that this program was built from
    """

func counted(_ number: Int, _ thing: String) -> String { "\(number) \(thing)\(number == 1 ? "" : "s")" }

let arguments = CommandLine.arguments.dropFirst()
if arguments.contains("--help") || arguments.contains("-h") {
    print(usage)
    exit(0)
}
if arguments.count > 1 || arguments.contains(where: { $0.hasPrefix("-") }) {
    FileHandle.standardError.write(Data("expected at most one folder, got: \(arguments)\n\(usage)\n".utf8))
    exit(2)
}

let report = XcodeChecker(Files(root: arguments.first)).check()
for finding in report.findings { print(finding) }
let targets = report.targets.map { "\($0.name) (\(counted($0.files, "file")))" }.joined(separator: ", ")
let verdict = report.findings.isEmpty ? "accepted" : counted(report.findings.count, "finding")
print("xcode-check: \(counted(report.objects, "object")), \(targets): \(verdict)")
exit(report.findings.isEmpty ? 0 : 1)
