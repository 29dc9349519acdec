// swift-tools-version: 6.0
import PackageDescription

#if canImport(Darwin)
    // Xcode and SwiftPM compile these into default.metallib. On Linux the Host device includes the same files as C++.
    let shaders: [Resource] = [
        .process("../../Shaders/Kernels/KVCacheWrite.metal")
    ]
#else
    let shaders: [Resource] = []
#endif

let applePlatforms: [Platform] = [.macOS, .iOS, .macCatalyst, .tvOS, .visionOS]

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
            cxxSettings: [
                .define("FMT_HEADER_ONLY"),
                .headerSearchPath("."),
                .headerSearchPath("../../Shaders"),
                .headerSearchPath("../ThirdParty/fmt/include", .when(platforms: applePlatforms)),
            ]
        ),
        .target(name: "MLXNativeKernels", dependencies: ["MLXNativeKernelsCore"]),
        .executableTarget(
            name: "decode-demo",
            dependencies: ["MLXNativeKernels"],
            path: "Examples/decode-demo"
        ),
        // Tests of the C++ rooms. It names no dependency, because SwiftPM cannot chain C++20 targets that carry
        // module maps; the test bundle links both.
        .target(
            name: "CoreTests",
            path: "Tests/Core",
            cxxSettings: [
                .define("FMT_HEADER_ONLY"),
                .headerSearchPath("."),
                .headerSearchPath("../Shaders"),
                .headerSearchPath("../../Shaders"),
                .headerSearchPath("../../Sources/MLXNativeKernelsCore"),
                .headerSearchPath("../../Sources/MLXNativeKernelsCore/include"),
                .headerSearchPath("../../Sources/ThirdParty/fmt/include", .when(platforms: applePlatforms)),
            ]
        ),
        .testTarget(
            name: "MLXNativeKernelsTests",
            dependencies: ["MLXNativeKernels", "MLXNativeKernelsCore", "CoreTests"]
        ),
    ],
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx20
)
