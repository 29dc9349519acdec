#!/usr/bin/env python3
"""Tests of xcode_check.py: the repository's project is accepted, and every seeded fault is reported."""
import re
import sys
import unittest

sys.dont_write_bytecode = True
from repository import Repository
from xcode_check import PROJECT, ROOT, check

REPOSITORY = Repository(ROOT)
SCHEME = "Xcode/MLXNativeKernels.xcodeproj/xcshareddata/xcschemes/MLXNativeKernels.xcscheme"
PLAN = "Xcode/Checks.xctestplan"
MODULE_MAP = "Xcode/Configuration/MLXNativeKernels.modulemap"
PRIVACY = "Shaders/PrivacyInfo.xcprivacy"
CORE = "Sources/MLXNativeKernelsCore"
DEVICE_TEST = "Tests/MLXNativeKernelsObjCTests/Support/DeviceTestCase.mm"

# By file: the first occurrence of a text becomes another one, with words of the finding that must report it. @10
# abbreviates the identifier that ends in 10.
EDITS = {
    PROJECT: [
        ("isa = PBXProject;", "isa = PBXProject", '";" is missing'),
        ("rootObject = @01", "rootObject = @10", "rootObject is not"),
        ("objectVersion = 77", "objectVersion = 56", "objectVersion is 56"),
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
         "2 public headers are called mnk_core.h"),
        ("ShaderBundle.swift,\n", "",
         "MLXNativeKernels compiles Shaders/ShaderBundle.swift, which is for SwiftPM alone"),
        ("@32 /* Shaders */,\n\t\t\t);\n\t\t\tname = MLXNativeKernels;", ");\n\t\t\tname = MLXNativeKernels;",
         "Shaders/Hadamard/Hadamard.metal is compiled by no target"),
        ("@30 /* MLXNativeKernelsCore */,\n\t\t\t\t@31", "@30,\n\t\t\t\t@33,\n\t\t\t\t@31",
         "HostDevice.cpp is compiled by MLXNativeKernels and MLXNativeKernelsHost"),
        ("@7B /* libMLXNativeKernelsHost.a in Frameworks */,\n", "",
         "MLXNativeKernelsTests does not link what it depends on"),
        ("@8D /* PBXTargetDependency */,\n", "", "DecodeDemo does not link what it depends on, MLXNativeKernels."),
        ("@77 /* MLXNativeKernels.framework in Embed Frameworks */,\n", "", "does not embed and sign the framework"),
        ("dstSubfolderSpec = 10;", "dstSubfolderSpec = 7;", "does not embed and sign the framework"),
        ("CodeSignOnCopy, ", "", "does not embed and sign the framework"),
        ("@78 /* jargon-lm in Resources */,\n", "", "DecodeDemo does not copy Examples/Models/jargon-lm"),
    ],
    f"{CORE}/Unified/Ops.cpp": [
        ('#include "Ops/Hadamard/Hadamard.cpp"\n', "",
         "Ops/Hadamard/Hadamard.cpp:1: the package does not compile this file"),
    ],
    "Package.swift": [
        ('"Executor", ', "", "Executor/Scheduler.cpp:1: the package does not compile this file"),
        ("Hadamard/Hadamard.metal", "Hadamard/Other.metal",
         "the package compiles Shaders/Hadamard/Other.metal, and the project does not"),
    ],
    "Xcode/Configuration/Shared.xcconfig": [
        ("/fmt/include", "/fmtlib/include", "ThirdParty/fmtlib/include does not exist"),
        ("/../Sources/MLXNativeKernelsHost/include", "/../Sources/Host/include", "Sources/Host/include does not exist"),
    ],
    "Xcode/Configuration/Framework.xcconfig": [
        ("$(MNK_CORE_HEADERS)", "$(MNK_HEADERS)", "$(MNK_HEADERS) is not defined"),
        ("$(inherited) $(MNK_CORE_HEADERS)", "$(inherited)", "is not found with the flags of MLXNativeKernels."),
    ],
    "Xcode/Configuration/Tests.xcconfig": [
        ("$(MNK_HOST_HEADERS) ", "", "DeviceTestCase.mm:3: MLXNativeKernelsHost/MLXNativeKernelsHost.h is not found"),
    ],
    DEVICE_TEST: [
        ('"MLXNativeKernelsHost/MLXNativeKernelsHost.h"', "<MLXNativeKernelsHost/MLXNativeKernelsHost.h>",
         "with the flags of MLXNativeKernelsTests, which are for quotes"),
        ('"DeviceTestCase.h"', "<MLXNativeKernels/MNKRemoved.h>", "MLXNativeKernels/MNKRemoved.h is not found"),
        ("DeviceTestCase.h", "DeviceTestCases.h", "DeviceTestCase.mm:1: DeviceTestCases.h is not found"),
    ],
    SCHEME: [
        ('0000000050"', '0000000059"', "@59 is not the target MLXNativeKernels"),
        ('BlueprintName = "MLX', 'BlueprintName = "MNK', "is not the target MNKNativeKernels"),
        ("MLXNativeKernels.xctestplan", "Other.xctestplan", "there is no test plan"),
        ("</BuildAction>", "", "this is not XML"),
    ],
    PLAN: [
        ('0000000051"', '0000000050"', "@50 is not the target MLXNativeKernelsTests"),
        ('"testTargets"', '"targets"', "this is not a test plan"),
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
    (PROJECT, None, "there is no such file"),
    (PROJECT, "{ objects = { }; objectVersion = 77; }", "rootObject is not"),
    (PROJECT, "{ objects = ( ); }", "no table of objects"),
    (PROJECT, "(" * 1000, "nested more than"),
    (PROJECT, "{ a = b; } c", "goes on after its end"),
    (PROJECT, '{ a = "', "a word is missing"),
    ("Package.swift", None, "there is no such file"),
    (PRIVACY, None, "this is not a privacy manifest"),
    (PLAN, "{", "this is not a test plan"),
    (PLAN, '{"testTargets": []}', "no test is run"),
    ("Xcode/MLXNativeKernels.xctestplan", None, "MLXNativeKernels.xctestplan does not exist"),
    (MODULE_MAP, None, "mnk_core.h is missing"),
    ("Sources/MLXNativeKernelsHost/New.cpp", "#include <MLXNativeKernels/Tensor.hpp>", "are included in quotes"),
    ("Sources/MLXNativeKernelsHost/New.cpp", "void f() { statvfs(); }", "New.cpp:1: a call needs a reason"),
    (f"{CORE}/Ops/New.cpp", '#import "MLXNativeKernels/MNKTensor.h"', "are imported in angle brackets"),
    (f"{CORE}/Runtime/New.cpp", "", f"{CORE}/Runtime/New.cpp:1: the package does not compile this file"),
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
    def check(self, file, text, words):
        found = [f"{file}:{line}: {message}" for file, line, message in check(REPOSITORY.seeding({file: text}))[0]]
        self.assertTrue(any(expanded(words) in one for one in found), f"not refused with {words}, but with: {found}")

    def test_project_is_accepted(self):
        found, _, targets = check(REPOSITORY)
        self.assertEqual(found, [])
        self.assertEqual([target.name for target, _ in targets], [
            "MLXNativeKernels", "MLXNativeKernelsHost", "MLXNativeKernelsTests", "DecodeDemo",
        ])

    def test_seeded_faults_are_reported(self):
        for file, edits in EDITS.items():
            text = REPOSITORY.text(file)
            for old, new, words in edits:
                with self.subTest(file=file, old=old, new=new):
                    self.assertIn(expanded(old), text)
                    self.check(file, text.replace(expanded(old), expanded(new), 1), words)
        for file, text, words in TEXTS:
            with self.subTest(file=file, text=(text or "")[:60]):
                self.check(file, text, words)


if __name__ == "__main__":
    unittest.main()
