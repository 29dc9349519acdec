# shellcheck shell=bash
# Sourced after common.sh by what compiles for Apple's systems without a Mac. The compiler is the Swift toolchain's,
# which knows these targets. libc++ with its availability, and the headers of Darwin's C library, are real
# (.ci/darwin-headers). Tests/AppleStandIns/SDK replaces the frameworks, as far as we use them: syntax and types are
# checked there; that Apple's frameworks have what is called is not.
appleSDK=Tests/AppleStandIns/SDK

# appleFlags TRIPLE: compiler flags for arm64-apple-macos14, say. Those of C++ come before them.
appleFlags() {
  say "-target $1 -nostdinc -isystem $("$(toolchain clang++)" -print-resource-dir)/include" \
    "-isystem .build/darwin/22/c -isystem $appleSDK -isystem $appleSDK/Frameworks"
}

# appleCxxFlags [EDITION]: of libc++. Darwin's own headers are always the newest: they say since when a function is there.
appleCxxFlags() {
  local edition=${1:-22}
  say "-include $appleSDK/LibCxx/ConfigSite$edition.h -isystem $appleSDK/LibCxx" \
    "-isystem .build/darwin/$edition/libcxx/include"
}
