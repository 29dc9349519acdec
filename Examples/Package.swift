// swift-tools-version: 6.1
import PackageDescription

/// Whether a variable of the Makefile names the package in the folder above.
func isAsked(_ variable: String) -> Bool {
    Context.environment[variable].map { $0 + "/Examples" == Context.packageDirectory } ?? false
}

// Optimizes the model's matrix products in a debug build.
let optimized: [SwiftSetting] = isAsked("MNK_OPTIMIZE") ? [.unsafeFlags(["-O"])] : []
// The software Metal runs kernels that only GPUs choose, which are part of the tests.
let kernels: [Target.Dependency] =
    isAsked("MNK_SOFT_METAL") ? [.product(name: "MLXNativeKernelsTestSupport", package: "MLXNativeKernels")] : []
let library: [Target.Dependency] = [
    .product(name: "MLXNativeKernels", package: "MLXNativeKernels"),
    .product(name: "MLXNativeKernelsHost", package: "MLXNativeKernels"),
]

let package = Package(
    name: "MLXNativeKernelsExamples",
    platforms: [.macOS(.v14), .iOS(.v17)],
    dependencies: [.package(name: "MLXNativeKernels", path: "..")],
    targets: [
        // A small language model that decodes with the kernels, and its demo's view model.
        .target(
            name: "JargonLM", dependencies: library, path: ".",
            exclude: ["DecodeDemo", "ObjCConsumer", "SwiftConsumer", "Tests", "decode-demo"], sources: ["JargonLM"],
            resources: [.copy("Models/jargon-lm")], swiftSettings: optimized),
        .executableTarget(
            name: "decode-demo", dependencies: library + kernels + ["JargonLM"], path: "decode-demo"),
        .testTarget(name: "JargonLMTests", dependencies: library + ["JargonLM", "decode-demo"]),
    ],
    swiftLanguageModes: [.v6]
)
