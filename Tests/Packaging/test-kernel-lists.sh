#!/usr/bin/env bash
# Every kernel file is in the Host device's list, which names no other file. XcodeCheck compares Package.swift's.
. "$(dirname "$0")/common.sh"
hostList=$host/Shipped/KernelList.h
kernels=$(cd Shaders && find . -name '*.metal' | sed 's|^\./||' | sort)
[ -n "$kernels" ] || fail "Shaders holds no .metal file"
named=$(grep -v '^ *//' "$hostList" | grep -oE '[A-Za-z0-9_]+/[A-Za-z0-9_]+\.metal"' | tr -d '"' | sort)
[ "$named" = "$kernels" ] || {
  diff <(say "$kernels") <(say "$named") || true
  fail "$hostList does not match the .metal files of Shaders (above: < are there, > are listed)"
}
# SwiftPM names a bundle after the package and the target with the kernels.
target=$(awk '/\.process\(/ { print name; exit } match($0, /name: "[A-Za-z]+"/) { name = substr($0, RSTART + 7, RLENGTH - 8) }' Package.swift)
grep -qF "\"MLXNativeKernels_$target.bundle\"" "$core/Devices/Metal/MetalLibrary.cpp" ||
  fail "MetalLibrary.cpp does not look for MLXNativeKernels_$target.bundle, which holds the kernels"
passed "the library is looked for in the bundle that holds it"
passed "$(printf '%s\n' "$kernels" | wc -l | tr -d ' ') kernel files are in the list"
