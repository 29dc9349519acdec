#!/usr/bin/env python3
"""Tests of xcode_check.py: the repository's project is accepted, and every seeded fault is reported."""
import re
import sys
import unittest

sys.dont_write_bytecode = True
from project import PROJECT, Repository
from xcode_check import MODULE_MAP, PRIVACY, ROOT, check

REPOSITORY = Repository(ROOT)
SCHEME = "Xcode/MLXNativeKernels.xcodeproj/xcshareddata/xcschemes/MLXNativeKernels.xcscheme"
PLAN = "Xcode/Checks.xctestplan"
CORE = "Sources/MLXNativeKernelsCore"

# By file: the first occurrence of a text becomes another one, with words of the finding that must report it. @10
# abbreviates the identifier that ends in 10.
EDITS = {
    PROJECT: [
        ("isa = PBXProject;", "isa = PBXProject", "this is not a project"),
        ("rootObject = @01", "rootObject = @10", "rootObject is not"),
        ("objectVersion = 77", "objectVersion = 56", "objectVersion is not 77"),
        ("@33 /* MLXNativeKernelsHost */ = {", "@32 = {", "@32 is defined twice"),
        ("mainGroup = @10", "mainGroup = @FF", "mainGroup names @FF, nothing"),
        ("mainGroup = @10", "mainGroup = @50", "PBXNativeTarget (expected PBXGroup)"),
        ("isa = PBXHeadersBuildPhase", "isa = PBXHeaderBuildPhase", "buildPhases names @60, PBXHeaderBuildPhase"),
        ("@25 /* README.md */,\n", "", "nothing names @25"),
        ("\t\t\t\t@37 ", "\t\t\t\t@36 ", "@36 is in two groups"),
        ("remoteGlobalIDString = @50", "remoteGlobalIDString = @56", "different targets"),
        ('sourceTree = "<group>"', 'sourceTree = "<absolute>"', "sourceTree is <absolute>"),
        ("path = ../Shaders;", "path = ../Shader;", "Shader does not exist"),
        ("path = Tests.xcconfig;", "path = Test.xcconfig;", "Xcode/Configuration/Test.xcconfig does not exist"),
        ("Metal/MetalFixture.cpp", "Metal/MetalFixtures.cpp", "there is no file Tests/Core/Metal/MetalFixtures.cpp"),
        ("Metal/MetalFixture.cpp,\n", "Metal/MetalFixture.cpp,\n\t\t\t\tMetal/MetalFixture.cpp,\n", "is named twice"),
        ("SoftMetal/SoftMetalFixture.cpp,\n", "",
         "MLXNativeKernelsTests compiles Tests/Core/SoftMetal/SoftMetalFixture.cpp, which the package"),
        ("membershipExceptions", "membershipException", "which is for SwiftPM alone"),
        ("target = @51 ", "target = @50 ", "excepts files of Tests/Core from MLXNativeKernels"),
        ("Devices/Metal/EmbeddedShaders.inc,\n",
         "Devices/Metal/EmbeddedShaders.inc,\n\t\t\t\tOps/Hadamard/Hadamard.cpp,\n",
         "Ops/Hadamard/Hadamard.cpp is compiled by no target (expected MLXNativeKernels alone)"),
        ("Devices/Metal/EmbeddedShaders.inc,\n", "", "EmbeddedShaders.inc would be copied"),
        ('".clang-format",\n', "", "Shaders/.clang-format would be copied"),
        ("include/MLXNativeKernels/mnk_core.h,\n", "", "mnk_core.h is not among the publicHeaders"),
        ("include/MLXNativeKernels/mnk_core.h,\n", "Support/File.hpp,\n", "is not in a folder include"),
        ("include/MLXNativeKernels/Generated/mnk_rotary.h,\n", "",
         "Generated/mnk_rotary.h is not among the headers that a phase copies"),
        ("$(PUBLIC_HEADERS_FOLDER_PATH)/Generated", "$(PUBLIC_HEADERS_FOLDER_PATH)",
         "Generated/mnk_rotary.h is not among the headers that a phase copies"),
        ("include/MLXNativeKernels/mnk_core.h,\n",
         "include/MLXNativeKernels/mnk_core.h,\n\t\t\t\tinclude/Other/mnk_core.h,\n",
         "2 public headers called mnk_core.h"),
        ("ShaderBundle.swift,\n", "",
         "MLXNativeKernels compiles Shaders/ShaderBundle.swift, which is for SwiftPM alone"),
        ("@32 /* Shaders */,\n\t\t\t);\n\t\t\tname = MLXNativeKernels;", ");\n\t\t\tname = MLXNativeKernels;",
         "Shaders/Hadamard/Hadamard.metal is compiled by no target"),
        ("@30 /* MLXNativeKernelsCore */,\n\t\t\t\t@31", "@30,\n\t\t\t\t@33,\n\t\t\t\t@31",
         "HostDevice.cpp is compiled by MLXNativeKernels and MLXNativeKernelsHost"),
        ("@7B /* libMLXNativeKernelsHost.a in Frameworks */,\n", "",
         "MLXNativeKernelsTests does not link what it depends on"),
        ("@8D /* PBXTargetDependency */,\n", "", "DecodeDemo does not link what it depends on, "),
        ("@77 /* MLXNativeKernels.framework in Embed Frameworks */,\n", "", "does not embed and sign the framework"),
        ("dstSubfolderSpec = 10;", "dstSubfolderSpec = 7;", "does not embed and sign the framework"),
        ("CodeSignOnCopy, ", "", "does not embed and sign the framework"),
        ("@78 /* jargon-lm in Resources */,\n", "", "DecodeDemo does not copy Examples/Models/jargon-lm"),
    ],
    f"{CORE}/Unified/Ops.cpp": [
        ('#include "Ops/Hadamard/Hadamard.cpp"\n', "",
         "Ops/Hadamard/Hadamard.cpp: the package does not compile this file"),
    ],
    "Package.swift": [
        ('"Executor", ', "", "Executor/Scheduler.cpp: the package does not compile this file"),
        ("Hadamard/Hadamard.metal", "Hadamard/Other.metal",
         "the package compiles Shaders/Hadamard/Other.metal, and the project does not"),
    ],
    "Xcode/Configuration/Shared.xcconfig": [
        ("/fmt/include", "/fmtlib/include", "ThirdParty/fmtlib/include does not exist"),
        ("/../Sources/MLXNativeKernelsHost/include", "/../Sources/Host/include", "Sources/Host/include does not exist"),
    ],
    "Xcode/Configuration/Framework.xcconfig": [
        ("$(MNK_CORE_HEADERS)", "$(MNK_HEADERS)", "$(MNK_HEADERS) is not defined"),
    ],
    SCHEME: [
        ('0000000050"', '0000000059"', "@59 is not the target MLXNativeKernels"),
        ('BlueprintName = "MLX', 'BlueprintName = "MNK', "is not the target MNKNativeKernels"),
        ("MLXNativeKernels.xctestplan", "Other.xctestplan", "there is no test plan"),
        ("</BuildAction>", "", "this cannot be read"),
    ],
    PLAN: [
        ('0000000051"', '0000000050"', "@50 is not the target MLXNativeKernelsTests"),
        ('"testTargets"', '"targets"', "this cannot be read"),
    ],
    PRIVACY: [
        ("<false/>", "<true/>", "NSPrivacyTracking is not false"),
        ("CategoryFileTimestamp", "CategoryDiskSpace", "a call needs a reason of NSPrivacyAccessedAPICategoryFile"),
        ("CategoryFileTimestamp", "CategoryDiskSpace", "DiskSpace is declared, but no call"),
        ("<string>C617.1</string>\n        <string>3B52.1</string>", "", "a call needs a reason"),
    ],
    MODULE_MAP: [
        ('header "mnk_core.h"', 'header "mnk_cores.h"', "mnk_cores.h is not a public header for C"),
        ('  header "mnk_core.h"\n', "", "mnk_core.h is missing"),
        ('header "mnk_core.h"', 'header "Tensor.hpp"', "Tensor.hpp is not a public header for C"),
        ('header "mnk_core.h"', 'header "mnk.h"', "mnk.h belongs once"),
        ('header "mnk_core.h"', 'header "mnk_core.h"\n  header "MNKTensor.h"', "MNKTensor.h belongs once"),
        ('header "MLX', 'umbrella header "MLX', "an umbrella includes"),
    ],
    "Tests/MLXNativeKernelsTests/ModuleTests.swift": [
        ("#if SWIFT_PACKAGE", "#if DEBUG", "Import it under #if SWIFT_PACKAGE"),
    ],
}

# A file has another text; None: it is missing.
TEXTS = [
    (PROJECT, None, "this is not a project"),
    (PROJECT, "{ objects = { }; objectVersion = 77; rootObject = A; }", "rootObject is not"),
    (PROJECT, "{ objects = ( ); }", "this is not a project"),
    (PROJECT, "{ a = b; } c", "this is not a project"),
    ("Package.swift", None, "the package does not compile this file"),
    (PRIVACY, None, "this is not a privacy manifest"),
    (PLAN, "{", "this cannot be read"),
    (PLAN, '{"testTargets": []}', "no target is named"),
    ("Xcode/MLXNativeKernels.xctestplan", None, "MLXNativeKernels.xctestplan does not exist"),
    (MODULE_MAP, None, "mnk_core.h is missing"),
    ("Sources/MLXNativeKernelsHost/New.cpp", "void f() { statvfs(); }", "New.cpp: a call needs a reason"),
    (f"{CORE}/Runtime/New.cpp", "", f"{CORE}/Runtime/New.cpp: the package does not compile this file"),
    (f"{CORE}/include/MLXNativeKernels/New.hpp", "", "New.hpp is not among the publicHeaders"),
    ("Tests/Core/Unified/New.cpp", "",
     "MLXNativeKernelsTests compiles Tests/Core/Unified/New.cpp, which is for SwiftPM alone"),
    ("Tests/Core/Metal/NewTests.cpp", "", "compiles Tests/Core/Metal/NewTests.cpp, which the package"),
    ("Shaders/Hadamard/New.metal", "", "the project compiles Shaders/Hadamard/New.metal, and the package does not"),
    ("Sources/MLXNativeKernels/Notes.txt", "", "Notes.txt would be copied into MLXNativeKernels"),
    ("Sources/MLXNativeKernels/Ops/Tensor.swift", "", "2 files called Tensor.swift"),
    ("Examples/DecodeDemo/Writer.swift", "", "DecodeDemo has 2 files called Writer.swift"),
]


def expanded(text):
    return re.sub("@([0-9A-F]{2})", r"4D4E4B0000000000000000\1", text)


class XcodeCheckTests(unittest.TestCase):
    def test_project_is_accepted(self):
        findings, project = check(REPOSITORY)
        self.assertEqual(findings, [])
        self.assertEqual(len(project.targets), 4)

    def test_seeded_faults_are_reported(self):
        seeded = list(TEXTS)
        for file, edits in EDITS.items():
            text = REPOSITORY.text(file)
            for old, new, words in edits:
                self.assertIn(expanded(old), text)
                seeded.append((file, text.replace(expanded(old), expanded(new), 1), words))
        for file, text, words in seeded:
            with self.subTest(file=file, expected=words):
                findings, _ = check(REPOSITORY.seeding(file, text))
                self.assertIn(expanded(words), "\n".join(findings))


if __name__ == "__main__":
    unittest.main()
