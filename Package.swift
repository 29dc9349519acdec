// swift-tools-version: 6.1
import PackageDescription

#if canImport(Darwin)
    let onApple = true
#else
    let onApple = false
#endif

/// Whether a variable names this package. A package that depends on it may use the same variables for other purposes.
func isAsked(_ variable: String) -> Bool { Context.environment[variable] == Context.packageDirectory }

// The Makefile sets these; a package that depends on this one gets none of them. The Metal device on Linux, over a
// software Metal. Requires metal-cpp's headers.
let softMetal = !onApple && isAsked("MNK_SOFT_METAL")
// Test programs; benchmarks.
let tools = isAsked("MNK_TOOLS")
let benches = isAsked("MNK_BENCHES")
// Optimizes the library in a debug build: unoptimized kernels are thirty times slower. Tests stay unoptimized and
// compile in half the time.
let optimized = isAsked("MNK_OPTIMIZE")
// Also compiles the Host device's kernels for AVX-512.
let everyLevel = isAsked("MNK_HOST_AVX512")

// fmt and metal-cpp are header-only submodules on Apple platforms. On Linux, fmt is the distribution's library.
let applePlatforms: [Platform] = [.macOS, .iOS, .macCatalyst, .tvOS, .visionOS]
func cxxSettings(root: String, isOptimized: Bool = false) -> [CXXSetting] {
    var settings: [CXXSetting] = [
        .define("FMT_HEADER_ONLY", .when(platforms: applePlatforms)),
        .headerSearchPath("\(root)/Sources/ThirdParty/fmt/include", .when(platforms: applePlatforms)),
        .headerSearchPath("\(root)/Sources/ThirdParty/metal-cpp", .when(platforms: applePlatforms)),
        .headerSearchPath("\(root)/Shaders"),
        .headerSearchPath("\(root)/Sources/MLXNativeKernelsCore"),
        .headerSearchPath("\(root)/Sources/MLXNativeKernelsCore/include"),
        .headerSearchPath("\(root)/Sources/MLXNativeKernelsHost"),
        .headerSearchPath("\(root)/Sources/MLXNativeKernelsHost/include"),
        .headerSearchPath("."),
    ]
    if softMetal {
        settings += [
            .define("MNK_SOFT_METAL"),
            .headerSearchPath("\(root)/.build/metal-cpp/14"),
            .headerSearchPath("\(root)/Tests/AppleStandIns/SDK"),
            .headerSearchPath("\(root)/Tests/AppleStandIns/SoftMetal"),
        ]
    }
    if everyLevel { settings.append(.define("MNK_HOST_LEVELS", to: "3")) }
    if isOptimized && optimized { settings.append(.unsafeFlags(["-O2"])) }
    return settings
}

let optimizedSwift: [SwiftSetting] = optimized ? [.unsafeFlags(["-O"])] : []

// C++ targets declare no dependencies on one another, because older SwiftPM cannot chain C++20 targets with module
// maps: they find headers by path, and the Swift targets that use them link them all.
let core: [Target.Dependency] = ["MLXNativeKernelsCore"] + (softMetal ? ["SoftMetal"] : [])
let all: [Target.Dependency] = core + ["MLXNativeKernelsHost"]

let library: [Target] = [
    .target(
        name: "MLXNativeKernelsCore",
        // Each file there includes those of a folder, so that headers are read once.
        sources: ["Unified"]
            + (onApple || softMetal ? ["UnifiedMetal", "Devices/Metal/MetalCppDefinitions.cpp"] : [])
            + (onApple ? ["ObjC"] : []),
        cxxSettings: cxxSettings(root: "../..", isOptimized: true),
        linkerSettings: [
            .linkedLibrary("fmt", .when(platforms: [.linux])),
            // Kernels call math functions, and a C program that links the core does not link libm.
            .linkedLibrary("m", .when(platforms: [.linux])),
            .linkedFramework("Foundation", .when(platforms: applePlatforms)),
            .linkedFramework("Metal", .when(platforms: applePlatforms)),
            // Without it, a command-line tool on macOS gets no default device.
            .linkedFramework("CoreGraphics", .when(platforms: [.macOS])),
            // Reports how many cores a GPU has.
            .linkedFramework("IOKit", .when(platforms: [.macOS])),
        ]
    ),
    // Runs the kernels on the CPU. An app for Apple platforms contains it only if it links the product.
    .target(
        name: "MLXNativeKernelsHost", sources: ["Unified", "Executor", "Shipped"],
        cxxSettings: cxxSettings(root: "../..", isOptimized: true)),
    .target(
        name: "MLXNativeKernels", dependencies: onApple ? core + ["MLXNativeKernelsShaders"] : all,
        swiftSettings: optimizedSwift),
]

// Xcode compiles the kernels into default.metallib, as SwiftPM does since 6.4. The Host device includes them as C++.
let shaders: [Target] =
    !onApple
    ? []
    : [
        .target(
            name: "MLXNativeKernelsShaders", path: "Shaders", sources: ["ShaderBundle.swift"],
            resources: [
                .process("FlashDecode/FlashDecodeMatrix.metal"),
                .process("FlashDecode/FlashDecodeVector.metal"),
                .process("FlashDecode/FlashPrefill.metal"),
                .process("Hadamard/Hadamard.metal"),
                .process("KVCacheDequantize/KVCacheDequantize.metal"),
                .process("KVCacheQuantize/KVCacheQuantize.metal"),
                .process("KVCacheWrite/KVCacheWrite.metal"),
                .process("MergePartials/FlashDecodeReduce.metal"),
                .process("MultiRoPE/MultiRoPE.metal"),
                .process("RotaryAppend/RotaryAppend.metal"),
                .process("Runtime/MathProbe.metal"),
                .process("Runtime/MatrixLayout.metal"),
                .process("Runtime/Stamp.metal"),
                .copy("PrivacyInfo.xcprivacy"),
            ])
    ]

let tests: [Target] = [
    .target(
        name: "MLXNativeKernelsCoreTests", path: "Tests/Core",
        sources: ["Unified"] + (softMetal ? ["UnifiedMetal"] : []), cxxSettings: cxxSettings(root: "../..")),
    // References, cases and kernels, which are slow unless optimized.
    .target(
        name: "MLXNativeKernelsTestSupport", path: "Tests/Core", sources: ["HostKernels", "UnifiedShared"],
        publicHeadersPath: "HostKernels",
        cxxSettings: cxxSettings(root: "../..", isOptimized: true) + [.headerSearchPath("include")]),
    .testTarget(
        name: "MLXNativeKernelsTests",
        dependencies: ["MLXNativeKernels", "MLXNativeKernelsCoreTests", "MLXNativeKernelsTestSupport"] + all),
]

let softMetalTargets: [Target] = [
    .target(
        name: "SoftMetal", path: "Tests/AppleStandIns/SoftMetal", sources: ["MessageSend.cpp", "Unified"],
        publicHeadersPath: "Nothing",
        cxxSettings: cxxSettings(root: "../../.."))
]

// For the demo, which is a package of its own.
let softMetalProducts: [Product] = [
    .library(name: "MLXNativeKernelsTestSupport", targets: ["MLXNativeKernelsTestSupport"])
]

let toolTargets: [Target] = [
    .executableTarget(name: "c-api-test", dependencies: all, path: "Tests/Packaging/c"),
    .executableTarget(
        name: "core-tests", dependencies: ["MLXNativeKernelsCoreTests", "MLXNativeKernelsTestSupport"] + all,
        path: "Tests/Packaging/core-tests/swift"),
]

let benchTargets: [Target] = [
    .target(
        name: "BenchSupport", path: "Tests/Tools/Bench", exclude: ["Main"],
        cxxSettings: cxxSettings(root: "../../..") + [.headerSearchPath("../../Core")]),
    .executableTarget(
        name: "bench", dependencies: ["BenchSupport", "MLXNativeKernels"] + all, path: "Tests/Tools/Bench/Main"),
]

let package = Package(
    name: "MLXNativeKernels",
    platforms: [.macOS(.v14), .iOS(.v17)],
    products: [
        .library(name: "MLXNativeKernels", targets: ["MLXNativeKernels"]),
        .library(name: "MLXNativeKernelsHost", targets: ["MLXNativeKernelsHost", "MLXNativeKernels"]),
    ] + (softMetal ? softMetalProducts : []),
    targets: library + shaders + tests + (softMetal ? softMetalTargets : [])
        + (tools ? toolTargets : []) + (benches ? benchTargets : []),
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx20
)
