/// The Xcode settings that the configurations use. Any other name is a typo, which Xcode would ignore silently, or must
/// be added here.
enum BuildSetting {
    enum Kind: Sendable {
        case anything
        case yesNo
        case oneOf([String])
    }

    static let known: [String: Kind] = [
        "ALWAYS_SEARCH_USER_PATHS": .yesNo, "APPLICATION_EXTENSION_API_ONLY": .yesNo,
        "ASSETCATALOG_COMPILER_APPICON_NAME": .anything, "BUILD_LIBRARY_FOR_DISTRIBUTION": .yesNo,
        "CLANG_CXX_LANGUAGE_STANDARD": .oneOf(["c++20", "gnu++20"]), "CLANG_CXX_LIBRARY": .oneOf(["libc++"]),
        "CLANG_ENABLE_MODULES": .yesNo, "CLANG_ENABLE_OBJC_ARC": .yesNo, "CLANG_ENABLE_OBJC_WEAK": .yesNo,
        "CLANG_WARN_QUOTED_INCLUDE_IN_FRAMEWORK_HEADER": .yesNo,
        "CLANG_WARN_UNGUARDED_AVAILABILITY": .oneOf(["YES", "YES_AGGRESSIVE", "NO"]),
        "CODE_SIGN_ENTITLEMENTS": .anything, "CODE_SIGN_IDENTITY": .anything,
        "CODE_SIGN_STYLE": .oneOf(["Automatic", "Manual"]), "CURRENT_PROJECT_VERSION": .anything,
        "DEBUG_INFORMATION_FORMAT": .oneOf(["dwarf", "dwarf-with-dsym"]), "DEFINES_MODULE": .yesNo,
        "DEVELOPMENT_TEAM": .anything, "DYLIB_COMPATIBILITY_VERSION": .anything, "DYLIB_CURRENT_VERSION": .anything,
        "DYLIB_INSTALL_NAME_BASE": .anything, "ENABLE_APP_SANDBOX": .yesNo, "ENABLE_HARDENED_RUNTIME": .yesNo,
        "ENABLE_MODULE_VERIFIER": .yesNo, "ENABLE_PREVIEWS": .yesNo, "ENABLE_TESTABILITY": .yesNo,
        "EXCLUDED_SOURCE_FILE_NAMES": .anything, "GCC_C_LANGUAGE_STANDARD": .oneOf(["c11", "gnu11", "c17", "gnu17"]),
        "GCC_OPTIMIZATION_LEVEL": .oneOf(["0", "1", "2", "3", "s", "fast"]), "GCC_PREPROCESSOR_DEFINITIONS": .anything,
        "GCC_WARN_ABOUT_RETURN_TYPE": .oneOf(["YES", "YES_ERROR", "NO"]), "GENERATE_INFOPLIST_FILE": .yesNo,
        "HEADER_SEARCH_PATHS": .anything, "INFOPLIST_FILE": .anything,
        "INFOPLIST_KEY_CFBundleDisplayName": .anything, "INFOPLIST_KEY_LSApplicationCategoryType": .anything,
        "INFOPLIST_KEY_UIApplicationSceneManifest_Generation": .yesNo,
        "INFOPLIST_KEY_UILaunchScreen_Generation": .yesNo,
        "INFOPLIST_KEY_UISupportedInterfaceOrientations_iPad": .anything,
        "INFOPLIST_KEY_UISupportedInterfaceOrientations_iPhone": .anything, "IPHONEOS_DEPLOYMENT_TARGET": .anything,
        "LD_RUNPATH_SEARCH_PATHS": .anything, "MACOSX_DEPLOYMENT_TARGET": .anything, "MARKETING_VERSION": .anything,
        "MODULEMAP_FILE": .anything, "MTL_COMPILER_FLAGS": .anything,
        "MTL_ENABLE_DEBUG_INFO": .oneOf(["YES", "NO", "INCLUDE_SOURCE"]), "MTL_FAST_MATH": .yesNo,
        "MTL_LANGUAGE_REVISION": .anything,
        "MTL_MATH_FP32_FUNCTIONS": .oneOf(["FAST", "PRECISE", "UseLanguageDefault"]),
        "MTL_MATH_MODE": .oneOf(["FAST", "RELAXED", "SAFE", "UseLanguageDefault"]), "ONLY_ACTIVE_ARCH": .yesNo,
        "OTHER_CPLUSPLUSFLAGS": .anything, "OTHER_LDFLAGS": .anything, "PRODUCT_BUNDLE_IDENTIFIER": .anything,
        "PRODUCT_NAME": .anything, "SDKROOT": .anything, "SKIP_INSTALL": .yesNo, "SUPPORTED_PLATFORMS": .anything,
        "SUPPORTS_MACCATALYST": .yesNo, "SUPPORTS_MAC_DESIGNED_FOR_IPHONE_IPAD": .yesNo,
        "SWIFT_ACTIVE_COMPILATION_CONDITIONS": .anything,
        "SWIFT_COMPILATION_MODE": .oneOf(["wholemodule", "singlefile", "incremental"]),
        "SWIFT_INCLUDE_PATHS": .anything, "SWIFT_INSTALL_OBJC_HEADER": .yesNo,
        "SWIFT_OPTIMIZATION_LEVEL": .oneOf(["-Onone", "-O", "-Osize"]), "SWIFT_VERSION": .oneOf(["6.0"]),
        "SYSTEM_HEADER_SEARCH_PATHS": .anything, "TARGETED_DEVICE_FAMILY": .anything, "USE_HEADERMAP": .yesNo,
        "VERSIONING_SYSTEM": .oneOf(["apple-generic"]), "WARNING_CFLAGS": .anything,
    ]

    /// Variables that Xcode defines.
    static let xcode: Set<String> = ["inherited", "SRCROOT", "TARGET_NAME", "BUILT_PRODUCTS_DIR"]

    /// The prefix of the project's settings, which must be defined before use.
    static let ours = "MNK_"

    /// Nil if Xcode accepts the value.
    static func complaint(_ name: String, _ value: String) -> String? {
        if name.hasPrefix(ours) { return nil }
        let expected: String
        switch known[name] {
        case nil: return "\(name) is no setting that is known here. Correct the spelling, or teach it."
        case .anything: return nil
        case .yesNo:
            if value == "YES" || value == "NO" { return nil }
            expected = "YES or NO"
        case .oneOf(let values):
            if values.contains(value) { return nil }
            expected = values.joined(separator: " or ")
        }
        return "\(name) is \(value.isEmpty ? "empty" : value) (expected \(expected)). Correct it."
    }
}
