# shellcheck shell=bash
# Sourced after common.sh by scripts that compile for Apple's systems without a Mac, using the Swift toolchain's clang.
# libc++, with its availability annotations, and the headers of Darwin's C library are real (.ci/darwin-headers).
# Tests/AppleStandIns/SDK replaces the frameworks, so only syntax and types are checked there, not Apple's declarations.
appleSDK=Tests/AppleStandIns/SDK

# appleFlags TRIPLE: compiler flags for a target such as arm64-apple-macos14. C++ flags come before them.
appleFlags() {
  say "-target $1 -nostdinc -isystem $("$(toolchain clang++)" -print-resource-dir)/include" \
    "-isystem .build/darwin/22/c -isystem $appleSDK -isystem $appleSDK/Frameworks"
}

# appleCxxFlags [EDITION]: flags for libc++. Darwin's headers are always the newest, with availability annotations.
appleCxxFlags() {
  local edition=${1:-22}
  say "-include $appleSDK/LibCxx/ConfigSite$edition.h -isystem $appleSDK/LibCxx" \
    "-isystem .build/darwin/$edition/libcxx/include"
}
