#!/usr/bin/env bash
# .ci/setup on a Mac says how to get Xcode's Metal compiler where it is missing, and nothing where all is there. Scripts
# stand for the Mac's programs.
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
# As Xcode 26 answers without the component.
program xcrun 'case "$*" in *metal*) echo "error: cannot execute tool '"'metal'"' due to missing Metal Toolchain" >&2; exit 1 ;; esac'
said=$(PATH="$scratch/bin:$PATH" "$scratch/tree/.ci/setup" 2>&1)
case "$said" in
*"xcodebuild -downloadComponent MetalToolchain"*) ;;
*) fail "make setup does not say how to get the Metal compiler (it says: $said)" ;;
esac
program xcrun 'exit 0'
said=$(PATH="$scratch/bin:$PATH" "$scratch/tree/.ci/setup" 2>&1)
[ -z "$said" ] || fail "make setup on a Mac that has all says: $said"
passed "make setup on a Mac names the command that fetches the Metal compiler"
