"""Files .xcconfig include files, set settings, and name paths that exist."""
import os
import re

from repository import Finding, clean

# The Xcode settings that the configurations use. Any other name is a typo, which Xcode would ignore silently, or must
# be added here.
YES_NO = """
    ALWAYS_SEARCH_USER_PATHS APPLICATION_EXTENSION_API_ONLY BUILD_LIBRARY_FOR_DISTRIBUTION CLANG_ENABLE_MODULES
    CLANG_ENABLE_OBJC_ARC CLANG_ENABLE_OBJC_WEAK CLANG_WARN_QUOTED_INCLUDE_IN_FRAMEWORK_HEADER DEFINES_MODULE
    ENABLE_APP_SANDBOX ENABLE_HARDENED_RUNTIME ENABLE_MODULE_VERIFIER ENABLE_PREVIEWS ENABLE_TESTABILITY
    GENERATE_INFOPLIST_FILE INFOPLIST_KEY_UIApplicationSceneManifest_Generation
    INFOPLIST_KEY_UILaunchScreen_Generation MTL_FAST_MATH ONLY_ACTIVE_ARCH SKIP_INSTALL SUPPORTS_MACCATALYST
    SUPPORTS_MAC_DESIGNED_FOR_IPHONE_IPAD SWIFT_INSTALL_OBJC_HEADER USE_HEADERMAP
"""
ANYTHING = """
    ASSETCATALOG_COMPILER_APPICON_NAME CODE_SIGN_ENTITLEMENTS CODE_SIGN_IDENTITY CURRENT_PROJECT_VERSION
    DEVELOPMENT_TEAM DYLIB_COMPATIBILITY_VERSION DYLIB_CURRENT_VERSION DYLIB_INSTALL_NAME_BASE
    EXCLUDED_SOURCE_FILE_NAMES GCC_PREPROCESSOR_DEFINITIONS HEADER_SEARCH_PATHS INFOPLIST_FILE
    INFOPLIST_KEY_CFBundleDisplayName INFOPLIST_KEY_LSApplicationCategoryType
    INFOPLIST_KEY_UISupportedInterfaceOrientations_iPad INFOPLIST_KEY_UISupportedInterfaceOrientations_iPhone
    IPHONEOS_DEPLOYMENT_TARGET LD_RUNPATH_SEARCH_PATHS MACOSX_DEPLOYMENT_TARGET MARKETING_VERSION MODULEMAP_FILE
    MTL_COMPILER_FLAGS MTL_LANGUAGE_REVISION OTHER_CPLUSPLUSFLAGS OTHER_LDFLAGS PRODUCT_BUNDLE_IDENTIFIER
    PRODUCT_NAME SDKROOT SUPPORTED_PLATFORMS SWIFT_ACTIVE_COMPILATION_CONDITIONS SWIFT_INCLUDE_PATHS
    SYSTEM_HEADER_SEARCH_PATHS TARGETED_DEVICE_FAMILY WARNING_CFLAGS
"""
# Values by name; none: any value.
KNOWN = {
    **{name: ["YES", "NO"] for name in YES_NO.split()},
    **{name: [] for name in ANYTHING.split()},
    "CLANG_CXX_LANGUAGE_STANDARD": ["c++20", "gnu++20"],
    "CLANG_CXX_LIBRARY": ["libc++"],
    "CLANG_WARN_UNGUARDED_AVAILABILITY": ["YES", "YES_AGGRESSIVE", "NO"],
    "CODE_SIGN_STYLE": ["Automatic", "Manual"],
    "DEBUG_INFORMATION_FORMAT": ["dwarf", "dwarf-with-dsym"],
    "GCC_C_LANGUAGE_STANDARD": ["c11", "gnu11", "c17", "gnu17"],
    "GCC_OPTIMIZATION_LEVEL": ["0", "1", "2", "3", "s", "fast"],
    "GCC_WARN_ABOUT_RETURN_TYPE": ["YES", "YES_ERROR", "NO"],
    "MTL_ENABLE_DEBUG_INFO": ["YES", "NO", "INCLUDE_SOURCE"],
    "MTL_MATH_FP32_FUNCTIONS": ["FAST", "PRECISE", "UseLanguageDefault"],
    "MTL_MATH_MODE": ["FAST", "RELAXED", "SAFE", "UseLanguageDefault"],
    "SWIFT_COMPILATION_MODE": ["wholemodule", "singlefile", "incremental"],
    "SWIFT_OPTIMIZATION_LEVEL": ["-Onone", "-O", "-Osize"],
    "SWIFT_VERSION": ["6.0"],
    "VERSIONING_SYSTEM": ["apple-generic"],
}
# Variables that Xcode defines.
XCODE = {"inherited", "SRCROOT", "TARGET_NAME", "BUILT_PRODUCTS_DIR"}
SDKS = ["macosx*", "iphone*", "iphoneos*", "iphonesimulator*"]


def findings(project, files, paths):
    check = Settings(project, files)
    used = project.all("XCBuildConfiguration")
    reached = {paths[id] for id in (one.text("baseConfigurationReference") for one in used) if id in paths}
    found = sorted({
        path
        for folder in {os.path.dirname(path) for path in reached} for path in files.below(folder)
        if path.endswith(".xcconfig")
    })
    # The project's own settings must be defined before use.
    for file in found:
        check.defined |= set(re.findall("^MNK_[A-Za-z_]*", "\n".join(line for _, line in check.lines(file)), re.M))
    for file in found:
        for number, line in check.lines(file):
            yield from check.line(file, number, line, reached)
    for file in found:
        if file not in reached:
            yield Finding(file, 1, "nothing uses this file. Use it, or remove it.")
    for configuration in used:
        for key, value in configuration.table("buildSettings").items():
            value = " ".join(map(str, value if isinstance(value, list) else [value]))
            yield from check.setting(project.path, key.line, key, value)


class Settings:
    def __init__(self, project, files):
        self.project, self.files = project, files
        self.defined, self.seen = set(), set()
        products = (project.first(target, "productReference") for target in project.targets)
        self.products = {product.text("path") for product in products if product}
        self.submodules = re.findall(r"path = (.*)", files.text(".gitmodules") or "")

    def lines(self, file):
        """Lines without comments, with their numbers."""
        lines = ((number, line.split("//")[0].strip()) for number, line in enumerate(self.files.lines(file), 1))
        return [(number, line) for number, line in lines if line]

    def line(self, file, number, line, reached):
        if line.startswith("#"):
            include = re.fullmatch(r'#include\??\s*"([^"]*)"', line)
            if not include:
                message = f'{line} is not an include (expected #include "Name.xcconfig"). Correct it.'
                yield Finding(file, number, message)
                return
            path = clean(f"{os.path.dirname(file)}/{include[1]}")
            reached.add(path)
            if not self.files.is_file(path):
                yield Finding(file, number, f"there is no file {path}. Correct the include.")
            return
        assignment = re.fullmatch(r"([^=\[]*?(?:\[[^\]]*\])?) ?= (.*)", line)
        if not assignment:
            yield Finding(file, number, f"{line} sets nothing (expected NAME = value). Correct it.")
            return
        name, value = assignment.groups()
        if (file, name) in self.seen:
            yield Finding(file, number, f"{name} is set twice. Remove one.")
        self.seen.add((file, name))
        yield from self.setting(file, number, name, value)

    def setting(self, file, line, full, value):
        name, condition = re.fullmatch(r"([^\[]*)(.*)", full).groups()
        expected = KNOWN.get(name)
        if not name.startswith("MNK_"):
            if expected is None:
                yield Finding(file, line, f"{name} is not a known setting. Correct the spelling, or add it to KNOWN.")
            elif expected and value not in expected:
                message = f"{name} is {value or 'empty'} (expected {' or '.join(expected)}). Correct it."
                yield Finding(file, line, message)
        conditions = [f"[config={one}]" for one in self.project.configurations] + [f"[sdk={one}]" for one in SDKS]
        if condition and condition not in conditions:
            message = f"{condition} is not a condition (expected a configuration or an SDK). Correct it."
            yield Finding(file, line, message)
        for used in re.findall(r"\$\((\w*)", value):
            if used not in XCODE and used not in KNOWN and used not in self.defined:
                yield Finding(file, line, f"$({used}) is not defined. Correct the spelling, or define it.")
        for product in re.findall(r'\$\(BUILT_PRODUCTS_DIR\)/([^ "]*)', value):
            if product not in self.products:
                yield Finding(file, line, f"{name} names {product}, which no target builds. Correct the name.")
        for part in re.findall(r'\$\(SRCROOT\)([^ "]*)', value):
            path = clean(self.project.folder + part)
            in_submodule = any((path + "/").startswith(one + "/") for one in self.submodules)
            if not (in_submodule or self.files.is_file(path) or self.files.is_folder(path)):
                yield Finding(file, line, f"{name} names {path}, which does not exist. Correct the path.")
