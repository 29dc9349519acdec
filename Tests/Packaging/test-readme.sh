#!/usr/bin/env bash
# Compiles every swift and cpp example in the README, and every complete one in the documentation.
#   swift   a program, or lines of a Package.swift if it starts with .package( or .product(
#   cpp     a file, or statements inside a function after its #include lines
# .ci/check-apple compiles the examples that import Metal, and .ci/objc those in Objective-C.
. "$(dirname "$0")/common.sh"

# shellcheck disable=SC2046  # a list of words
for language in swift cpp; do examples "$language" "$scratch" README.md $(pages); done

checkProgram() {
  mkdir "$1.d" && cp "$1" "$1.d/main.swift"
  "$(toolchain swiftc)" -typecheck -swift-version 6 -I "$products/Modules" -I "$products" \
    -Xcc -fmodule-map-file="$core/include/module.modulemap" -Xcc -I"$core/include" \
    -Xcc -fmodule-map-file="$host/include/module.modulemap" -Xcc -I"$host/include" "$1.d/main.swift"
}

checkManifest() {
  mkdir "$1.d"
  {
    say '// swift-tools-version: 6.0'
    say 'import PackageDescription'
    say 'let package = Package(name: "Reader", dependencies: ['
    grep -E '^ *\.package\(' "$1" | sed 's/,* *$/,/'
    say '], targets: [.target(name: "Reader", dependencies: ['
    grep -E '^ *\.product\(' "$1" | sed 's/,* *$/,/' || true
    say '])])'
  } >"$1.d/Package.swift"
  swift package --package-path "$1.d" dump-package >/dev/null
}

compileCxx() {
  "$(toolchain clang++)" -std=c++20 -fsyntax-only -Wall -Werror -Wno-unused -I "$core/include" -x c++ "$1"
}

checkCxx() {
  compileCxx "$1" 2>"$1.asFile" && return
  {
    grep '^#include' "$1"
    say '#include <MLXNativeKernels/MLXNativeKernels.hpp>'
    say 'void example() {'
    grep -v '^#include' "$1"
    say '}'
  } >"$1.body"
  compileCxx "$1.body" 2>"$1.asBody" && return
  if grep -q 'main(' "$1"; then cat "$1.asFile" >&2; else cat "$1.asBody" >&2; fi
  return 1
}

checked=0
for example in "$scratch"/[0-9]*.swift "$scratch"/[0-9]*.cpp; do
  [ -f "$example" ] || continue
  if ! onMac && grep -q '^import Metal$' "$example"; then continue; fi
  case "$example" in
  *.swift) if grep -qE '^ *\.(package|product)\(' "$example"; then check=checkManifest; else check=checkProgram; fi ;;
  *) check=checkCxx ;;
  esac
  $check "$example" || failShowing "$example" "this example does not compile"
  checked=$((checked + 1))
done
grep -qs '^// README.md:' "$scratch"/[0-9]*.swift || fail "README.md has no swift example"
for language in swift cpp; do
  grep -qs '^// Sources/' "$scratch"/[0-9]*."$language" || fail "the documentation has no $language example"
done
passed "$checked examples of the README and the documentation compile"
