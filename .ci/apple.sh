# shellcheck shell=bash
# Sourced after common.sh by what compiles for Apple's systems without a Mac. The compiler is the Swift toolchain's,
# which knows these targets. Tests/AppleStandIns/SDK stands for the SDK, as far as we use it; libstdc++ and glibc stand for Apple's
# C++ and C libraries. So syntax and types are checked; that Apple's systems have what is called is not.
appleSDK=Tests/AppleStandIns/SDK

# appleFlags TRIPLE: compiler flags for arm64-apple-macos14, say. A processor that is not this machine's needs the
# headers of a cross compiler.
appleFlags() {
  local processor=${1%%-*} flags="-target $1" folder
  [ "$processor" != arm64 ] || processor=aarch64
  # Where this clang looks for headers on Linux. Its own stay first, so what follows C++ comes after them. glibc defines
  # a macro __nonnull, which is a word of the language there.
  flags="$flags -U__nonnull -D_GNU_SOURCE -nostdinc++"
  for folder in $("$(toolchain clang++)" "--target=$processor-linux-gnu" -E -x c++ -v /dev/null 2>&1 >/dev/null |
    sed -n '/^#include <\.\.\.>/,/^End of/s/^ //p'); do
    case "$folder" in
    */c++/*) flags="$flags -isystem $folder" ;;
    */lib/clang/* | /usr/local/include) ;;
    /usr/include) [ "$processor" != "$(uname -m)" ] || flags="$flags -idirafter $folder" ;;
    *) flags="$flags -idirafter $folder" ;;
    esac
  done
  case "$flags" in
  *-isystem*-idirafter*) say "$flags" ;;
  *) fail "$(toolchain clang++) finds no C++ and C headers for $processor. Install g++, or g++-$processor-linux-gnu" ;;
  esac
}
