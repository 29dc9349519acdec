// swift-tools-version: 6.0
import PackageDescription

#if canImport(Darwin)
    let resources: [Resource] = [
        // Xcode compiles these into default.metallib, and SwiftPM does since 6.4. The Host device includes them as C++.
        .process("../../Shaders/Kernels/FlashDecodeMatrix.metal"),
        .process("../../Shaders/Kernels/FlashDecodeReduce.metal"),
        .process("../../Shaders/Kernels/FlashDecodeVector.metal"),
        .process("../../Shaders/Kernels/Hadamard.metal"),
        .process("../../Shaders/Kernels/KVCacheDequantize.metal"),
        .process("../../Shaders/Kernels/KVCacheQuantize.metal"),
        .process("../../Shaders/Kernels/KVCacheWrite.metal"),
        .process("../../Shaders/Kernels/MatrixLayout.metal"),
        .process("../../Shaders/Kernels/MultiRoPE.metal"),
        .process("../../Shaders/Kernels/Stamp.metal"),
        .copy("../../Xcode/Framework/PrivacyInfo.xcprivacy"),
    ]
    let exclusions: [String] = []
    let softMetal = false
#else
    let resources: [Resource] = []
    // Tests of this package run the Metal device on Linux too, over a software Metal. The Makefile asks for it by the
    // path of this package, after it has fetched metal-cpp's headers; nobody who depends on the package does.
    let softMetal = Context.environment["MNK_SOFT_METAL"] == Context.packageDirectory
    // Swift has no Objective-C here.
    let exclusions = ["ObjC"] + (softMetal ? [] : ["Devices/Metal"])
#endif

// fmt and metal-cpp are submodules on Apple platforms, used as headers alone. On Linux fmt is the distribution's library.
let applePlatforms: [Platform] = [.macOS, .iOS, .macCatalyst, .tvOS, .visionOS]
func cxxSettings(root: String) -> [CXXSetting] {
    let softMetalSettings: [CXXSetting] = [
        .define("MNK_SOFT_METAL"),
        .headerSearchPath("\(root)/.build/metal-cpp/14"),
        .headerSearchPath("\(root)/Tests/AppleSDK"),
        .headerSearchPath("\(root)/Tests/SoftMetal"),
    ]
    return (softMetal ? softMetalSettings : []) + [
        .define("FMT_HEADER_ONLY", .when(platforms: applePlatforms)),
        .headerSearchPath("\(root)/Sources/ThirdParty/fmt/include", .when(platforms: applePlatforms)),
        .headerSearchPath("\(root)/Sources/ThirdParty/metal-cpp", .when(platforms: applePlatforms)),
        .headerSearchPath("\(root)/Shaders"),
        .headerSearchPath("\(root)/Sources/MLXNativeKernelsCore"),
        .headerSearchPath("\(root)/Sources/MLXNativeKernelsCore/include"),
        .headerSearchPath("."),
    ]
}

// It shows no header to others, because SwiftPM cannot chain C++20 targets that carry module maps.
let softMetalTargets: [Target] =
    softMetal
    ? [
        .target(
            name: "SoftMetal", path: "Tests/SoftMetal", publicHeadersPath: "Nothing",
            cxxSettings: cxxSettings(root: "../.."))
    ] : []

let package = Package(
    name: "MLXNativeKernels",
    platforms: [.macOS(.v14), .iOS(.v17)],
    products: [
        .library(name: "MLXNativeKernels", targets: ["MLXNativeKernels"])
    ],
    targets: softMetalTargets + [
        .target(
            name: "MLXNativeKernelsCore",
            dependencies: softMetal ? ["SoftMetal"] : [],
            exclude: exclusions,
            resources: resources,
            cxxSettings: cxxSettings(root: "../.."),
            linkerSettings: [
                .linkedLibrary("fmt", .when(platforms: [.linux])),
                // Kernels call math functions, and a C program that links the core brings no libm.
                .linkedLibrary("m", .when(platforms: [.linux])),
                .linkedFramework("Foundation", .when(platforms: applePlatforms)),
                .linkedFramework("Metal", .when(platforms: applePlatforms)),
                // Without it a command line tool on a Mac gets no default device.
                .linkedFramework("CoreGraphics", .when(platforms: [.macOS])),
            ]
        ),
        .target(name: "MLXNativeKernels", dependencies: ["MLXNativeKernelsCore"]),
        // A small language model that decodes through the kernels, and what a demo of it shows.
        .target(
            name: "JargonLM", dependencies: ["MLXNativeKernels"], path: "Examples/JargonLM",
            resources: [.copy("../Models/jargon-lm")]),
        .executableTarget(
            name: "decode-demo", dependencies: ["JargonLM", "MLXNativeKernels"], path: "Examples/decode-demo"),
        .testTarget(
            name: "JargonLMTests", dependencies: ["JargonLM", "MLXNativeKernels", "decode-demo"],
            path: "Tests/JargonLMTests"),
        // The C++ tests and benchmarks name no dependency, because SwiftPM cannot chain C++20 targets that carry
        // module maps; the Swift targets that run them link the core.
        .target(
            name: "CoreTests", path: "Tests/Core", exclude: softMetal ? [] : ["Metal", "SoftMetal"],
            cxxSettings: cxxSettings(root: "../..")),
        .testTarget(
            name: "MLXNativeKernelsTests",
            dependencies: ["MLXNativeKernels", "MLXNativeKernelsCore", "CoreTests"]
        ),
        .executableTarget(name: "c-door-test", dependencies: ["MLXNativeKernelsCore"], path: "Tests/House/c"),
        .target(
            name: "BenchSupport", path: "Tests/Bench", exclude: ["Main"], cxxSettings: cxxSettings(root: "../..")),
        .executableTarget(
            name: "bench", dependencies: ["BenchSupport", "MLXNativeKernelsCore"], path: "Tests/Bench/Main"),
        .target(
            name: "DecodeBenchSupport", path: "Tests/DecodeBench", exclude: ["Main"],
            cxxSettings: cxxSettings(root: "../..") + [.headerSearchPath("..")]),
        .executableTarget(
            name: "decode-bench", dependencies: ["BenchSupport", "DecodeBenchSupport", "MLXNativeKernelsCore"],
            path: "Tests/DecodeBench/Main"),
        .executableTarget(
            name: "core-tests", dependencies: ["CoreTests", "MLXNativeKernelsCore"],
            path: "Tests/House/core-tests/swift"),
        // Would a Mac accept the shaders? Foundation alone, and no part of the library.
        .target(name: "ShaderCheck", path: "Tests/ShaderCheck/Library"),
        .executableTarget(name: "shader-check", dependencies: ["ShaderCheck"], path: "Tests/ShaderCheck/Tool"),
        .testTarget(name: "ShaderCheckTests", dependencies: ["ShaderCheck"], path: "Tests/ShaderCheck/Tests"),
        // Would Xcode build the package from its project?
        .target(name: "XcodeCheck", path: "Tests/XcodeCheck/Library"),
        .executableTarget(name: "xcode-check", dependencies: ["XcodeCheck"], path: "Tests/XcodeCheck/Tool"),
        .testTarget(name: "XcodeCheckTests", dependencies: ["XcodeCheck"], path: "Tests/XcodeCheck/Tests"),
    ],
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx20
)
