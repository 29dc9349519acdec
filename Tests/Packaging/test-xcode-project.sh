#!/usr/bin/env bash
# Xcode's project builds what the package does, as far as can be checked without Xcode.
. "$(dirname "$0")/common.sh"

Tests/Tools/XcodeCheck/xcode_check.py || fail "Xcode would not build the package from its project (above)"
passed "the Xcode project names what exists, and each file is in one target"
Tests/Tools/XcodeCheck/test_xcode_check.py || fail "xcode-check fails its tests (above)"
passed "xcode-check reports seeded faults of the project"

grep -q '^PRODUCT_BUNDLE_IDENTIFIER = .*\$(DEVELOPMENT_TEAM)$' Xcode/Configuration/Shared.xcconfig ||
  fail "two teams cannot sign the same bundle identifier: end it with \$(DEVELOPMENT_TEAM) in Shared.xcconfig"
passed "bundle identifiers end with the team"

# The framework in Xcode's layout: public headers in one folder, and the project's module map.
framework=$scratch/MLXNativeKernels.framework
mkdir -p "$framework/Headers/Generated" "$framework/Modules"
cp "$core"/include/MLXNativeKernels/*.h* "$framework/Headers"
cp "$core"/include/MLXNativeKernels/Generated/*.h* "$framework/Headers/Generated"
cp Xcode/Configuration/MLXNativeKernels.modulemap "$framework/Modules/module.modulemap"

cat >"$scratch/import.c" <<'C'
#pragma clang module import MLXNativeKernels
size_t devices(void) { return mnk_device_count(); }
C
"$(toolchain clang)" -fmodules -fmodules-cache-path="$scratch/cache" -F "$scratch" \
  -Wnon-modular-include-in-framework-module -Wno-quoted-include-in-framework-header -Werror -fsyntax-only "$scratch/import.c"
passed "C imports the framework's module"

printf '#include <MLXNativeKernels/MLXNativeKernels.%s>\n' h hpp >"$scratch/include.cpp"
say 'bool works() { return mnk::Device::makeDefault() && mnk_device_count() > 0; }' >>"$scratch/include.cpp"
"$(toolchain clang++)" -std=c++20 -F "$scratch" -Werror -fsyntax-only "$scratch/include.cpp"
passed "C++ includes the framework's headers"

# In the framework, Swift and C are one module; in the package they are two.
# shellcheck disable=SC2046  # a list of words
"$(toolchain swiftc)" -typecheck -swift-version 6 -warnings-as-errors -module-name MLXNativeKernels \
  -import-underlying-module -F "$scratch" $(find Sources/MLXNativeKernels -name '*.swift') ||
  fail "the Swift API does not compile in the framework (above)"
passed "the Swift API compiles over the framework's module"
