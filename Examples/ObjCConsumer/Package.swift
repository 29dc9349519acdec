// swift-tools-version: 6.0
import PackageDescription

// The smallest package with Objective-C that uses this one. Outside the repository, give its URL in place of the path.
let package = Package(
    name: "ObjCConsumer",
    platforms: [.macOS(.v14)],
    dependencies: [.package(name: "MLXNativeKernels", path: "../..")],
    targets: [
        .executableTarget(
            name: "ObjCConsumer",
            dependencies: [.product(name: "MLXNativeKernels", package: "MLXNativeKernels")])
    ]
)
