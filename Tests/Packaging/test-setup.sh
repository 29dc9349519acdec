#!/usr/bin/env bash
# On a Mac, .ci/setup says how to get Xcode's Metal compiler if it is missing, and otherwise prints nothing. Scripts
# replace the Mac's programs.
. "$(dirname "$0")/common.sh"
mkdir -p "$scratch/bin" "$scratch/tree/.ci" "$scratch/tree/Sources/ThirdParty"/{fmt/include/fmt,metal-cpp/Metal}
cp .ci/setup .ci/common.sh "$scratch/tree/.ci"
touch "$scratch/tree/Sources/ThirdParty"/{fmt/include/fmt/format.h,metal-cpp/Metal/Metal.hpp}

# program NAME TEXT
program() {
  printf '#!/bin/sh\n%s\n' "$2" >"$scratch/bin/$1"
  chmod +x "$scratch/bin/$1"
}
program uname 'echo Darwin'
program swift 'exit 0'
# The answer of Xcode 26 without the component.
program xcrun 'case "$*" in *metal*) echo "error: cannot execute tool '"'metal'"' due to missing Metal Toolchain" >&2; exit 1 ;; esac'
output=$(PATH="$scratch/bin:$PATH" "$scratch/tree/.ci/setup" 2>&1)
case "$output" in
*"xcodebuild -downloadComponent MetalToolchain"*) ;;
*) fail "make setup does not say how to get the Metal compiler (it says: $output)" ;;
esac
program xcrun 'exit 0'
output=$(PATH="$scratch/bin:$PATH" "$scratch/tree/.ci/setup" 2>&1)
[ -z "$output" ] || fail "make setup on a complete Mac must print nothing, but prints: $output"
passed "make setup on a Mac names the command that fetches the Metal compiler"
