import XCTest
import XcodeCheck

/// Faults in the files around project.pbxproj.
final class SeededSurroundingsTests: SeededTestCase {
    private let shared = "Xcode/Configuration/Shared.xcconfig"
    private let framework = "Xcode/Configuration/Framework.xcconfig"

    func testConfigurations() throws {
        try assertRefused(shared, "USE_HEADERMAP = NO", "USE_HEADER_MAP = NO", "USE_HEADER_MAP is no setting")
        try assertRefused(
            shared, "USE_HEADERMAP = NO", "USE_HEADERMAP = OFF", "USE_HEADERMAP is OFF (expected YES or NO)")
        try assertRefused(shared, "USE_HEADERMAP = NO", "USE_HEADERMAP = NO\nUSE_HEADERMAP = NO", "is set twice")
        try assertRefused(shared, "USE_HEADERMAP = NO", "USE_HEADERMAP: NO", "sets nothing")
        try assertRefused(shared, "/fmt/include", "/fmtlib/include", "ThirdParty/fmtlib/include, which is not there")
        try assertRefused(shared, "[config=Release]", "[config=Fast]", "[config=Fast] is no condition")
        try assertRefused(shared, "[sdk=macosx*]", "[sdk=macos*]", "[sdk=macos*] is no condition")
        try assertRefused(
            shared, "SDKROOT = auto", "#include \"None.xcconfig\"", "there is no file Xcode/Configuration/None")
        try assertRefused(shared, "SDKROOT = auto", "#import \"Tool.xcconfig\"", "is no include")
        try assertRefused(framework, "$(MNK_CORE_HEADERS)", "$(MNK_HEADERS)", "$(MNK_HEADERS) is defined nowhere")
        try assertRefused(
            framework, "Configuration/MLX", "Configurations/MLX", "MODULEMAP_FILE names Xcode/Configurations/")
        try assertRefused(framework, "MTL_MATH_MODE = SAFE", "MTL_MATH_MODE = safe", "MTL_MATH_MODE is safe")
        assertRefused(["Xcode/Configuration/Other.xcconfig": ""], "nothing uses this file")
        try assertRefused(
            Self.project, "buildSettings = {", "buildSettings = { SDK_ROOT = auto;", "SDK_ROOT is no setting")
    }

    func testSchemes() throws {
        let scheme = "Xcode/MLXNativeKernels.xcodeproj/xcshareddata/xcschemes/MLXNativeKernels.xcscheme"
        try assertRefused(scheme, "0000000050\"", "0000000059\"", "is no target of the project")
        try assertRefused(scheme, "BlueprintName = \"MLX", "BlueprintName = \"MNK", "BlueprintName is MNKNativeKernels")
        try assertRefused(scheme, ".framework\"", ".app\"", "BuildableName is MLXNativeKernels.app")
        try assertRefused(
            scheme, "container:MLXNativeKernels.xcodeproj", "container:X.xcodeproj", "ReferencedContainer is")
        try assertRefused(scheme, "MLXNativeKernels.xctestplan", "Other.xctestplan", "there is no test plan")
        try assertRefused(
            scheme, "buildConfiguration = \"Debug\"", "buildConfiguration = \"Quick\"", "no configuration Quick")
        try assertRefused(scheme, "</BuildAction>", "", "this is no XML")
        for text in ["", "<", "<a", "<a b", "<a b=", "<a b=\"", "<a b=c>", "<a>", "</a>", "<a></b>", "<!-- <a>", "<a/"]
        {
            assertRefused([scheme: text], "this is no XML")
        }
        for text in ["<?xml version=\"1.0\"?>\n<a b = \"c\"/>", "<!-- b --><a>\n</a>"] {
            XCTAssertEqual(XcodeChecker(repository.seeding([scheme: text])).check().findings, [], text)
        }
    }

    func testTestPlan() throws {
        let plan = "Xcode/Checks.xctestplan"
        let plain = "Xcode/MLXNativeKernels.xctestplan"
        assertRefused([plain: repository.text(plan)], "(expected [\"Default\"])")
        assertRefused([plan: "{"], "this is no JSON object")
        assertRefused([plan: "[]"], "this is no JSON object")
        assertRefused([plan: "{\"configurations\": 1, \"testTargets\": {}}"], "the configurations are []")
        try assertRefused(plan, "\"Validation\"", "\"Checks\"", "the configurations are")
        try assertRefused(plan, "000000000002\"", "000000000003\"", "is no UUID, or is used twice")
        try assertRefused(plan, "\"MTL_SHADER_VALIDATION\"", "\"MTL_SHADER\"", "does not set MTL_SHADER_VALIDATION")
        try assertRefused(plan, "\"enabled\" : true", "\"enabled\" : false", "does not turn addressSanitizer on")
        try assertRefused(plan, "\"threadSanitizerEnabled\"", "\"threadSanitizer\"", "an option threadSanitizer,")
        try assertRefused(plan, "0000000051\"", "0000000050\"", "which is no test target")
        try assertRefused(plan, "0000000051\"", "0000000050\"", "no test of MLXNativeKernelsTests is run")
        try assertRefused(plan, "\"MLXNativeKernelsTests\"", "\"Tests\"", "(expected MLXNativeKernelsTests)")
        try assertRefused(
            plan, "container:", "container:../", "containerPath of 4D4E4B000000000000000051 is container:../MLX")
        try assertRefused(plan, "\"version\" : 1", "\"version\" : 2", "version is not 1")
    }

    func testPrivacyManifest() throws {
        let manifest = "Shaders/PrivacyInfo.xcprivacy"
        assertRefused([manifest: "<plist>"], "this is no property list")
        assertRefused([manifest: nil], "there are 0 privacy manifests")
        try assertRefused(manifest, "<false/>", "<true/>", "NSPrivacyTracking is not false")
        try assertRefused(
            manifest, "CategoryFileTimestamp", "CategoryDiskSpace",
            "a call needs a reason of NSPrivacyAccessedAPICategoryFileTimestamp")
        try assertRefused(manifest, "CategoryFileTimestamp", "CategoryDiskSpace", "DiskSpace is declared, and no call")
        try assertRefused(manifest, "<string>C617.1</string>\n        <string>3B52.1</string>", "", "has no reason")
        assertRefused(["Examples/decode-demo/Info.plist": "<plist>"], "this is no property list")
    }

    func testHeaders() throws {
        let map = "Xcode/Configuration/MLXNativeKernels.modulemap"
        try assertRefused(map, "header \"mnk_core.h\"", "header \"mnk_cores.h\"", "mnk_cores.h is no public header")
        try assertRefused(map, "  header \"mnk_core.h\"\n", "", "mnk_core.h is a public header, and is missing")
        try assertRefused(map, "header \"mnk_core.h\"", "header \"Tensor.hpp\"", "Tensor.hpp is C++")
        try assertRefused(map, "header \"mnk_core.h\"", "header \"mnk.h\"", "mnk.h is named twice")
        try assertRefused(map, "header \"MLX", "umbrella header \"MLX", "an umbrella takes in")
        try assertRefused(map, "    requires objc\n", "", "belongs into the part that requires objc")
        assertRefused([map: nil], "there is no module map")
        let swift = "Tests/MLXNativeKernelsTests/ModuleTests.swift"
        try assertRefused(swift, "#if SWIFT_PACKAGE", "#if DEBUG", "Import it under #if SWIFT_PACKAGE")
        let source = "Sources/MLXNativeKernelsCore/Ops/New.cpp"
        assertRefused([source: "#include <MLXNativeKernels/Tensor.hpp>"], "are included in quotes")
        assertRefused([source: "#import \"MLXNativeKernels/MNKTensor.h\""], "are imported in angle brackets")
    }
}
