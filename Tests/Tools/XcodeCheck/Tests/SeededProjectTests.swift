import XCTest
import XcodeCheck

/// Faults in project.pbxproj.
final class SeededProjectTests: SeededTestCase {
    private func id(_ end: String) -> String { "4D4E4B0000000000000000\(end)" }

    func testReferences() throws {
        let file = Self.project
        try assertRefused(
            file, "mainGroup = \(id("10"))", "mainGroup = \(id("FF"))", "mainGroup names \(id("FF")), which is not")
        try assertRefused(
            file, "mainGroup = \(id("10"))", "mainGroup = \(id("50"))", "a PBXNativeTarget (expected a PBXGroup)")
        try assertRefused(file, "\t\t\t\t\(id("37")) ", "\t\t\t\t\(id("36")) ", "is in a group already")
        try assertRefused(file, "\t\t\t\t\(id("25")) /* README.md */,\n", "", "nothing leads to \(id("25"))")
        try assertRefused(
            file, "\t\t\(id("33")) /* MLXNativeKernelsHost */ = {", "\t\t\(id("32")) = {",
            "\(id("32")) is defined twice")
        try assertRefused(
            file, "rootObject = \(id("01"))", "rootObject = \(id("10"))", "rootObject names no PBXProject")
        try assertRefused(
            file, "remoteGlobalIDString = \(id("50"))", "remoteGlobalIDString = \(id("53"))", "different targets")
        try assertRefused(file, "remoteInfo = MLXNativeKernels;", "remoteInfo = Kernels;", "remoteInfo is Kernels")
        try assertRefused(file, "\t\t\(id("32")) /* Shaders */ = {", "\t\tLIB = {", "LIB is no identifier")
    }

    func testShapes() throws {
        let file = Self.project
        try assertRefused(file, "objectVersion = 77", "objectVersion = 56", "objectVersion is 56")
        try assertRefused(file, "isa = PBXHeadersBuildPhase", "isa = PBXHeaderBuildPhase", "is not known here")
        try assertRefused(file, "membershipExceptions", "membershipException", "has no membershipException.")
        try assertRefused(file, "\t\t\tsourceTree = \"<group>\";\n", "", "lacks sourceTree")
        try assertRefused(file, "sourceTree = \"<group>\"", "sourceTree = \"<absolute>\"", "sourceTree is <absolute>")
        try assertRefused(file, "name = Debug;", "name = Debugging;", "a target has the configurations")
        try assertRefused(file, "isa = PBXProject;", "isa = PBXProject", "\";\" is missing")
        try assertRefused(file, "targets = (", "targets = \(id("50")); knownRegions = (", "targets is no list")
    }

    func testFoldersAndFiles() throws {
        let file = Self.project
        try assertRefused(file, "path = ../Shaders;", "path = ../Shader;", "there is no folder Shader.")
        try assertRefused(
            file, "path = Tool.xcconfig;", "path = Tools.xcconfig;", "there is no file Xcode/Configuration/Tools")
        assertRefused(["Xcode/MLXNativeKernels.xctestplan": nil], "there is no file Xcode/MLXNativeKernels.xctestplan")
    }

    func testMembership() throws {
        let file = Self.project
        try assertRefused(
            file, "Metal/MetalFixture.cpp", "Metal/MetalFixtures.cpp",
            "there is no file Tests/Core/Metal/MetalFixtures.cpp")
        try assertRefused(
            file, "\t\t\t\tSoftMetal/SoftMetalFixture.cpp,\n", "",
            "MLXNativeKernelsCoreTests compiles Tests/Core/SoftMetal/SoftMetalFixture.cpp, which the package")
        try assertRefused(
            file, "\t\t\t\tDevices/Metal/EmbeddedShaders.inc,\n",
            "\t\t\t\tDevices/Metal/EmbeddedShaders.inc,\n\t\t\t\tOps/Hadamard/Hadamard.cpp,\n",
            "Ops/Hadamard/Hadamard.cpp is compiled by no target (expected MLXNativeKernels alone)")
        try assertRefused(
            file, "\t\t\t\tDevices/Metal/EmbeddedShaders.inc,\n", "", "EmbeddedShaders.inc would be copied")
        try assertRefused(
            file, "\t\t\t\tinclude/MLXNativeKernels/mnk_core.h,\n", "", "mnk_core.h is not among the publicHeaders")
        try assertRefused(
            file, "\t\t\t\tinclude/MLXNativeKernels/mnk_core.h,\n", "\t\t\t\tSupport/File.hpp,\n",
            "lies in no folder include")
        let tests = "\t\t\t\t\(id("35")) /* MLXNativeKernelsTests */,\n\t\t\t);\n\t\t\tname"
        try assertRefused(
            file, tests, "\t\t\t\t\(id("30")),\n\(tests)", "is compiled by MLXNativeKernels and MLXNativeKernelsTests")
        let shaders = "\t\t\t\t\(id("32")) /* Shaders */,\n\t\t\t);\n\t\t\tname = MLXNativeKernels;"
        try assertRefused(
            file, shaders, "\t\t\t);\n\t\t\tname = MLXNativeKernels;",
            "Shaders/Hadamard/Hadamard.metal is compiled by no target")
        try assertRefused(
            file, "\t\t\t\tShaderBundle.swift,\n", "",
            "MLXNativeKernels compiles Shaders/ShaderBundle.swift, which is for SwiftPM alone")
        try assertRefused(file, "\t\t\t\t\".clang-format\",\n", "", "Shaders/.clang-format would be copied")
    }

    func testHostDevice() throws {
        let file = Self.project
        let host = "\t\t\t\t\(id("33")) /* MLXNativeKernelsHost */,\n\t\t\t);\n\t\t\tname = MLXNativeKernelsHost;"
        try assertRefused(
            file, host, "\t\t\t);\n\t\t\tname = MLXNativeKernelsHost;",
            "HostDevice.cpp is compiled by no target (expected MLXNativeKernelsHost alone)")
        try assertRefused(
            file, "\t\t\t\t\(id("30")) /* MLXNativeKernelsCore */,\n\t\t\t\t\(id("31"))",
            "\t\t\t\t\(id("30")),\n\t\t\t\t\(id("33")),\n\t\t\t\t\(id("31"))",
            "HostDevice.cpp is compiled by MLXNativeKernels and MLXNativeKernelsHost")
        let linked = " /* libMLXNativeKernelsHost.a in Frameworks */,\n"
        try assertRefused(
            file, "\t\t\t\t\(id("7B"))\(linked)", "",
            "MLXNativeKernelsTests links MLXNativeKernelsCoreTests, but not MLXNativeKernelsHost, which that one uses")
        try assertRefused(
            file, "\t\t\t\t\(id("72")) /* MLXNativeKernels.framework in Frameworks */,\n", "",
            "decode-demo links MLXNativeKernelsHost, but not MLXNativeKernels, which that one uses")
        try assertRefused(
            file, "\t\t\t\t\(id("8D")) /* PBXTargetDependency */,\n", "",
            "DecodeDemo links MLXNativeKernelsHost, and does not depend on it")
        let app = "Examples/DecodeDemo/DecodeDemoApp.swift"
        let imports = "import MLXNativeKernelsHost\n"
        let unlinked = try XCTUnwrap(repository.text(file)).replacingFirst("\t\t\t\t\(id("7E"))\(linked)", with: "")
        assertRefused(
            [file: unlinked, app: imports], "DecodeDemoApp.swift:1: DecodeDemo does not link MLXNativeKernelsHost")
        assertRefused(
            ["Sources/MLXNativeKernelsHost/New.cpp": "#include <MLXNativeKernels/Tensor.hpp>"], "are included in quotes"
        )
        assertRefused(
            ["Sources/MLXNativeKernelsHost/New.cpp": "void f() { statvfs(); }"], "New.cpp:1: a call needs a reason")
    }

    func testUnifiedFiles() throws {
        let core = "Sources/MLXNativeKernelsCore"
        try assertRefused(
            Self.project, "\t\t\t\tUnified/CAPI.cpp,\n", "",
            "MLXNativeKernels compiles \(core)/Unified/CAPI.cpp, which is for SwiftPM alone")
        assertRefused(
            ["Tests/Core/Unified/New.cpp": ""],
            "MLXNativeKernelsCoreTests compiles Tests/Core/Unified/New.cpp, which is for SwiftPM alone")
        assertRefused(
            ["\(core)/Runtime/New.cpp": ""], "\(core)/Runtime/New.cpp:1: the package does not compile this file")
        try assertRefused(
            "\(core)/Unified/Common.cpp", "#include \"Ops/Hadamard/HadamardRules.cpp\"\n", "",
            "\(core)/Ops/Hadamard/HadamardRules.cpp:1: the package does not compile this file")
        try assertRefused(
            "Package.swift", "\"Executor\", ", "", "Executor/Worker.cpp:1: the package does not compile this file")
    }

    func testProducts() throws {
        let file = Self.project
        let embedded = "\t\t\t\t\(id("77")) /* MLXNativeKernels.framework in Embed Frameworks */,\n"
        try assertRefused(file, embedded, "", "DecodeDemo does not embed MLXNativeKernels")
        try assertRefused(file, "dstSubfolderSpec = 10;", "dstSubfolderSpec = 7;", "does not embed MLXNativeKernels")
        try assertRefused(file, "CodeSignOnCopy, ", "", "MLXNativeKernels is embedded, and not signed")
        try assertRefused(file, embedded, "\t\t\t\t\(id("75")),\n", "\(id("75")) is in two phases")
        try assertRefused(
            file, "\t\t\t\t\(id("75")) /* MLXNativeKernels.framework in Frameworks */,\n", "",
            "DecodeDemo links JargonLM, but not MLXNativeKernels")
        try assertRefused(
            file, "\t\t\t\t\(id("76")) /* libJargonLM.a in Frameworks */,\n", "",
            "ContentView.swift:1: DecodeDemo does not link JargonLM, which is imported here")
        try assertRefused(
            file, "\t\t\t\t\(id("86")) /* PBXTargetDependency */,\n", "", "JargonLM does not depend on MLXNativeKernels"
        )
        try assertRefused(
            file, "\t\t\t\t\(id("88")) /* PBXTargetDependency */,\n", "",
            "DecodeDemo links JargonLM, and does not depend on it")
        for (copy, phase, target) in [("78", "Resources", "DecodeDemo"), ("7A", "Copy Model", "decode-demo")] {
            try assertRefused(
                file, "\t\t\t\t\(id(copy)) /* jargon-lm in \(phase) */,\n", "",
                "\(target) does not copy Examples/Models/jargon-lm, which JargonLM reads")
        }
        try assertRefused(
            file, "path = \"Models/jargon-lm\"", "path = \"Model/jargon-lm\"",
            "there is no folder Examples/Model/jargon-lm")
        let entitlements = "Xcode/Configuration/DecodeDemo.entitlements"
        try assertRefused(entitlements, "<true/>", "<false/>", "app-sandbox is not true")
        assertRefused([entitlements: "<plist>"], "app-sandbox is not true")
        assertRefused(["Examples/DecodeDemo/Notes.md": ""], "Notes.md would be copied into DecodeDemo")
        try assertRefused(
            file, "\t\t\t\t\(id("3B")) /* DecodeDemo */,\n\t\t\t);\n\t\t\tname = DecodeDemo;",
            "\t\t\t);\n\t\t\tname = DecodeDemo;", "RingView.swift is compiled by no target (expected DecodeDemo alone)")
    }

    func testNewFilesOfThePackage() throws {
        assertRefused(
            ["Tests/Core/Metal/NewTests.cpp": ""], "compiles Tests/Core/Metal/NewTests.cpp, which the package")
        assertRefused(["Tests/Core/SoftMetal/NewTests.cpp": ""], "compiles Tests/Core/SoftMetal/NewTests.cpp")
        assertRefused(
            ["Shaders/Hadamard/New.metal": ""],
            "the project compiles Shaders/Hadamard/New.metal, and the package does not")
        try assertRefused(
            "Package.swift", "Hadamard/Hadamard.metal", "Hadamard/Other.metal",
            "the package compiles Shaders/Hadamard/Other.metal, and the project does not")
        assertRefused(
            ["Sources/MLXNativeKernelsCore/include/MLXNativeKernels/New.hpp": ""],
            "New.hpp is not among the publicHeaders")
        assertRefused(["Sources/MLXNativeKernels/Notes.txt": ""], "Notes.txt would be copied into MLXNativeKernels")
        assertRefused(["Sources/MLXNativeKernels/.hidden": ""], ".hidden would be copied into MLXNativeKernels")
        assertRefused(["Sources/MLXNativeKernels/Ops/Tensor.swift": ""], "2 files called Tensor.swift")
        assertRefused(["Package.swift": nil], "there is no such file")
        try assertRefused(
            "Package.swift", "sources: [\"Unified\"]", "sources: []", "the package does not compile this file")
    }
}
