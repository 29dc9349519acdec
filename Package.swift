// swift-tools-version: 6.0
import PackageDescription

#if canImport(Darwin)
    // Xcode and SwiftPM compile these into default.metallib. The Host device includes the same files as C++.
    let shaders: [Resource] = [
        .process("../../Shaders/Kernels/KVCacheWrite.metal")
    ]
#else
    let shaders: [Resource] = []
#endif

// fmt is a submodule on Apple platforms, used as headers alone, and the distribution's library on Linux.
let applePlatforms: [Platform] = [.macOS, .iOS, .macCatalyst, .tvOS, .visionOS]
func cxxSettings(root: String) -> [CXXSetting] {
    [
        .define("FMT_HEADER_ONLY", .when(platforms: applePlatforms)),
        .headerSearchPath("\(root)/Sources/ThirdParty/fmt/include", .when(platforms: applePlatforms)),
        .headerSearchPath("\(root)/Shaders"),
        .headerSearchPath("\(root)/Sources/MLXNativeKernelsCore"),
        .headerSearchPath("\(root)/Sources/MLXNativeKernelsCore/include"),
        .headerSearchPath("."),
    ]
}

let package = Package(
    name: "MLXNativeKernels",
    platforms: [.macOS(.v14), .iOS(.v17)],
    products: [
        .library(name: "MLXNativeKernels", targets: ["MLXNativeKernels"])
    ],
    targets: [
        .target(
            name: "MLXNativeKernelsCore",
            resources: shaders,
            cxxSettings: cxxSettings(root: "../.."),
            linkerSettings: [
                .linkedLibrary("fmt", .when(platforms: [.linux])),
                // Kernels call math functions, and a C program that links the core brings no libm.
                .linkedLibrary("m", .when(platforms: [.linux])),
            ]
        ),
        .target(name: "MLXNativeKernels", dependencies: ["MLXNativeKernelsCore"]),
        .executableTarget(
            name: "decode-demo",
            dependencies: ["MLXNativeKernels"],
            path: "Examples/decode-demo"
        ),
        // The C++ tests and benchmarks name no dependency, because SwiftPM cannot chain C++20 targets that carry
        // module maps; the Swift targets that run them link the core.
        .target(name: "CoreTests", path: "Tests/Core", cxxSettings: cxxSettings(root: "../..")),
        .testTarget(
            name: "MLXNativeKernelsTests",
            dependencies: ["MLXNativeKernels", "MLXNativeKernelsCore", "CoreTests", "decode-demo"]
        ),
        .executableTarget(name: "c-door-test", dependencies: ["MLXNativeKernelsCore"], path: "Tests/House/c"),
        .target(
            name: "BenchSupport", path: "Tests/Bench", exclude: ["Main"], cxxSettings: cxxSettings(root: "../..")),
        .executableTarget(
            name: "bench", dependencies: ["BenchSupport", "MLXNativeKernelsCore"], path: "Tests/Bench/Main"),
        .executableTarget(
            name: "core-tests", dependencies: ["CoreTests", "MLXNativeKernelsCore"],
            path: "Tests/House/core-tests/swift"),
        // Would a Mac accept the shaders? Foundation alone, and no part of the library.
        .target(name: "ShaderCheck", path: "Tests/ShaderCheck/Library"),
        .executableTarget(name: "shader-check", dependencies: ["ShaderCheck"], path: "Tests/ShaderCheck/Tool"),
        .testTarget(name: "ShaderCheckTests", dependencies: ["ShaderCheck"], path: "Tests/ShaderCheck/Tests"),
    ],
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx20
)
