# shellcheck shell=bash
# Sourced after common.sh by scripts that build the core and its C++ tests without SwiftPM, for another processor or
# with a sanitizer. An object is rebuilt when its source, an include or the flags change.
core=Sources/MLXNativeKernelsCore
host=Sources/MLXNativeKernelsHost
includes="-I $core -I $core/include -I $host -I $host/include -I Shaders -I Tests/Core -I Tests/Core/include -I Tests/Shaders -I Tests/Fuzz"
if onMac; then
  metal="-isystem Sources/ThirdParty/metal-cpp"
  frameworks="-framework Foundation -framework Metal -framework CoreGraphics -framework IOKit"
  coreSources() { find "$core" "$host" -name '*.cpp' ! -path '*/Unified*/*'; }
  testSources() { find Tests/Core Tests/Packaging/core-tests -name '*.cpp' ! -path '*/Unified*/*' | grep -vE '^Tests/Core/(Metal|SoftMetal)/'; }
else
  # The Metal device runs on a software Metal.
  metal="-DMNK_SOFT_METAL -I Tests/AppleStandIns/SoftMetal -isystem .build/metal-cpp/14 -isystem Tests/AppleStandIns/SDK"
  frameworks=""
  coreSources() { find "$core" "$host" Tests/AppleStandIns/SoftMetal -name '*.cpp' ! -path '*/Unified*/*'; }
  testSources() { find Tests/Core Tests/Packaging/core-tests -name '*.cpp' ! -path '*/Unified*/*'; }
fi
# The headers that most files spend their compile time on, and their language.
prefixLanguage=c++
prefixHeaders="fmt/format.h fmt/ranges.h algorithm array atomic functional map memory mutex optional set span string
  thread variant vector"
# The flags with which .ci/sanitize and .ci/objc compile the core, so that they share its objects. Kernels for other
# instruction sets have the same source.
sanitizedFlags="-gline-tables-only -fno-omit-frame-pointer -DMNK_HOST_LEVELS=1"
addressSanitizer="-fsanitize=address,undefined -fno-sanitize-recover=undefined"
# This check would map a second stack for every lane of every threadgroup: tests would take fifteen times as long.
addressOptions=detect_stack_use_after_return=0

# Use the toolchain's symbolizer: PATH may have another version, or none.
useSymbolizer() {
  local symbolizer name
  symbolizer=$(toolchain llvm-symbolizer 2>/dev/null || true)
  [ -x "$symbolizer" ] || return 0
  for name in ASAN LSAN TSAN UBSAN; do export "${name}_SYMBOLIZER_PATH=$symbolizer"; done
}

# The code that tests share, without the tests.
supportSources() {
  say Tests/Core/HostKernels/ShippedGPUForms.cpp
  find Tests/Core/Harness Tests/Core/Ops Tests/Core/Cache -name '*.cpp' ! -name '*Tests.cpp'
}
fuzzSources() {
  coreSources
  supportSources
  find Tests/Fuzz -name '*.cpp'
}

# objectsOf OUT, with source names on stdin: the objects that compileChanged writes.
objectsOf() { tr / _ | sed "s|.*|$1/objects/&.o|"; }

# isCurrent FILE: whether FILE exists and is newer than everything in its dependency file.
isCurrent() {
  local includes
  [ -f "$1" ] || return 1
  includes=$(sed -e 's/^[^:]*://' -e 's/\\$//' "${1%.*}.d" 2>/dev/null) || return 1
  # shellcheck disable=SC2086  # a list of words; one that is gone is an error, and so no longer current
  [ -n "$includes" ] && [ -z "$(find $includes -newer "$1" 2>&1)" ]
}

# compileOne SOURCE OUT CLANG FLAGS LEVEL
compileOne() {
  local object="$2/objects/${1//\//_}.o" flags="$4 $5 -include-pch $2/prefix.pch"
  # Tests spend their time in kernels, the executor and references. Optimizing the rest would only slow down the build.
  case "$1" in
  */Executor/* | */Checking/* | */Shipped*.cpp | */HostKernels* | */Harness/SoftFloat.cpp) flags="$4 -O1" ;;
  Tests/Core/Ops/*Tests.cpp) ;;
  Tests/Core/Ops/*)
    flags="$4 -O1"
    ;;
  esac
  if isCurrent "$object"; then return; fi
  rm -f "$object"
  # shellcheck disable=SC2086  # a list of words
  "$3" $flags -MMD -MF "${object%.*}.d" -c "$1" -o "$object"
}
export -f isCurrent compileOne

# precompile OUT CLANG FLAGS: builds OUT/prefix.pch, again when the headers, the flags or the compiler change.
precompile() {
  local out=$1 settings
  settings="$("$2" --version) $3 $prefixLanguage $prefixHeaders"
  if isCurrent "$out/prefix.pch" && [ "$(cat "$out/prefix.made" 2>/dev/null)" = "$settings" ]; then return; fi
  mkdir -p "$out"
  rm -f "$out/prefix.made"
  # shellcheck disable=SC2086  # a list of words
  printf '#include <%s>\n' $prefixHeaders >"$out/prefix.hpp"
  # shellcheck disable=SC2086  # likewise
  "$2" $3 -fpch-instantiate-templates -MD -MF "$out/prefix.d" -x "$prefixLanguage-header" "$out/prefix.hpp" \
    -o "$out/prefix.pch"
  say "$settings" >"$out/prefix.made"
}

# compileChanged OUT CLANG FLAGS [LEVEL], with source names on stdin: compiles on all cores. LEVEL is the optimization
# of code other than kernels; the default is -O0.
compileChanged() {
  local out=$1 clang=$2 flags="-std=c++20 -fblocks -DSWIFT_PACKAGE=1 $metal $includes $3" level=${4:--O0}
  onMac || .ci/metal-cpp
  mkdir -p "$out/objects"
  if [ "$(cat "$out/flags" 2>/dev/null)" != "$clang $flags $level" ]; then
    rm -f "$out"/objects/*
    say "$clang $flags $level" >"$out/flags"
  fi
  precompile "$out" "$clang" "$flags $level"
  # Start the slowest files first, so that none runs alone at the end.
  # shellcheck disable=SC2016  # the inner shell expands
  awk '/Kernels|Shipped/ { print; next } { others = others $0 "\n" } END { printf "%s", others }' |
    xargs -P "$(getconf _NPROCESSORS_ONLN)" -I {} bash -c 'compileOne "$@"' _ {} "$out" "$clang" "$flags" "$level"
}

# link PROGRAM LINKER FLAGS, with object names on stdin: links if an object is newer than the program or the list of
# objects changed.
link() {
  local objects
  objects=$(cat)
  # shellcheck disable=SC2086  # lists of words
  if [ ! -x "$1" ] || [ "$(cat "$1.objects" 2>/dev/null)" != "$objects" ] || [ -n "$(find $objects -newer "$1")" ]; then
    $2 $objects -o "$1" $3
    say "$objects" >"$1.objects"
  fi
}
