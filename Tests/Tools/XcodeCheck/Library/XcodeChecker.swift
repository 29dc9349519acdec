/// Checks whether Xcode would read the project and build the package from it, as far as possible without Xcode.
public struct XcodeChecker: Sendable {
    public struct Report: Sendable {
        public var findings: [Finding] = []
        public var objects = 0
        /// The targets, with the number of files that each compiles.
        public var targets: [(name: String, files: Int)] = []
    }

    public static let project = "Xcode/MLXNativeKernels.xcodeproj/project.pbxproj"

    private let files: Files

    public init(_ files: Files = Files()) { self.files = files }

    public func check() -> Report {
        guard let text = files.text(Self.project) else {
            return Report(findings: [
                Finding(Self.project, "there is no such file. Correct the path of the repository.")
            ])
        }
        let project = Project(text, path: Self.project)
        // Without a root, all other findings would be noise.
        guard project.root != nil else { return Report(findings: project.findings.sorted()) }
        let paths = Paths(project, files)
        let membership = Membership(project, paths, files)
        let findings =
            project.findings + ReferenceCheck.findings(project) + paths.findings + membership.findings
            + PackageCheck.findings(project, membership, files) + ConfigurationCheck.findings(project, paths, files)
            + SchemeCheck.findings(project, files) + TestPlanCheck.findings(project, paths, files)
            + PrivacyCheck.findings(project, paths, membership, files)
            + ProductCheck.findings(project, paths, membership, files)
            + HeaderCheck.findings(project, membership, files) + ImportCheck.findings(membership, files)
        return Report(
            findings: Set(findings).sorted(), objects: project.objects.count,
            targets: membership.targets.map { ($0.name, $0.compiled.count) })
    }
}
