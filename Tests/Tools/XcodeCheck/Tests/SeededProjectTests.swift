import XCTest
import XcodeCheck

/// Mistakes in project.pbxproj.
final class PlantedProjectTests: PlantedTestCase {
    private func id(_ end: String) -> String { "4D4E4B0000000000000000\(end)" }

    func testReferences() throws {
        let file = Self.project
        try assertRefused(
            file, "mainGroup = \(id("10"))", "mainGroup = \(id("FF"))", "mainGroup names \(id("FF")), which is not")
        try assertRefused(
            file, "mainGroup = \(id("10"))", "mainGroup = \(id("50"))", "a PBXNativeTarget (expected a PBXGroup)")
        try assertRefused(file, "\t\t\t\t\(id("37")) ", "\t\t\t\t\(id("36")) ", "is in a group already")
        try assertRefused(file, "\t\t\t\t\(id("34")) /* Types */,\n", "", "nothing leads to \(id("34"))")
        try assertRefused(
            file, "\t\t\(id("33")) /* Lib */ = {", "\t\t\(id("32")) /* Lib */ = {", "\(id("32")) is defined twice")
        try assertRefused(
            file, "rootObject = \(id("01"))", "rootObject = \(id("10"))", "rootObject names no PBXProject")
        try assertRefused(
            file, "remoteGlobalIDString = \(id("50"))", "remoteGlobalIDString = \(id("53"))", "different targets")
        try assertRefused(file, "remoteInfo = MLXNativeKernels;", "remoteInfo = Kernels;", "remoteInfo is Kernels")
        try assertRefused(file, "\t\t\(id("33")) /* Lib */ = {", "\t\tLIB = {", "LIB is no identifier")
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
        try assertRefused(file, "path = ../Shaders;", "path = ../Shader;", "there is no folder Shader/Kernels")
        try assertRefused(
            file, "path = Tool.xcconfig;", "path = Tools.xcconfig;", "there is no file Xcode/Configuration/Tools")
        assertRefused(["Xcode/MLXNativeKernels.xctestplan": nil], "there is no file Xcode/MLXNativeKernels.xctestplan")
    }

    func testMembership() throws {
        let file = Self.project
        try assertRefused(
            file, "Metal/MetalScene.cpp", "Metal/MetalScenes.cpp", "there is no file Tests/Core/Metal/MetalScenes.cpp")
        try assertRefused(
            file, "\t\t\t\tSoftMetal/Rig.cpp,\n", "",
            "CoreTests compiles Tests/Core/SoftMetal/Rig.cpp, which")
        try assertRefused(
            file, "\t\t\t\tDevices/Metal/EmbeddedShaders.inc,\n",
            "\t\t\t\tDevices/Metal/EmbeddedShaders.inc,\n\t\t\t\tOps/Hadamard.cpp,\n",
            "Ops/Hadamard.cpp is compiled by no target (expected MLXNativeKernels alone)")
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
        try assertRefused(
            file, "\t\t\t\t\(id("32")) /* Kernels */,\n\t\t\t\t\(id("39"))", "\t\t\t\t\(id("39"))",
            "Hadamard.metal is compiled by no target")
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
            ["Shaders/Kernels/New.metal": ""],
            "the project compiles Shaders/Kernels/New.metal, and the package does not")
        assertRefused(
            ["Sources/MLXNativeKernelsCore/include/MLXNativeKernels/New.hpp": ""],
            "New.hpp is not among the publicHeaders")
        assertRefused(["Sources/MLXNativeKernels/Notes.txt": ""], "Notes.txt would be copied into MLXNativeKernels")
        assertRefused(["Sources/MLXNativeKernels/.hidden": ""], ".hidden would be copied into MLXNativeKernels")
        assertRefused(["Sources/MLXNativeKernels/Ops/Tensor.swift": ""], "2 files called Tensor.swift")
        assertRefused(["Package.swift": nil], "there is no such file")
        try assertRefused("Package.swift", "exclude: softMetal ? [] : [", "exclude: [", "are not found. Teach")
    }
}
