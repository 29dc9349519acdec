#!/usr/bin/env bash
# A clean build must not grow by more than a tenth: in bytes that the compiler's front end reads, and in bytes of code
# that it generates. Times would depend on the machine.
. "$(dirname "$0")/common.sh"
budget=Tests/Packaging/build-budget.txt
if onMac || [ "$(uname -m)" != x86_64 ]; then
  skipped "the budget of a build: its numbers are those of x86-64 Linux"
  exit
fi

# within NAME GOT
within() {
  local allowed
  allowed=$(awk -v name="$1" '$1 == name { print $2 }' "$budget")
  [ "${allowed:-0}" -gt 0 ] || fail "$budget has no number for $1"
  [ $((10 * $2)) -le $((11 * allowed)) ] ||
    fail "$1: $2, more than a tenth over the $allowed of $budget. Make the build smaller, or raise the number and say why."
  passed "$1 of a clean build: $2 (budget $allowed)"
}

within preprocessed-bytes "$(find "$core/Unified" "$host"/{Executor,Shipped,Unified} -name '*.cpp' |
  xargs -I {} "$(toolchain clang++)" -std=c++20 -E -P -I Shaders -I "$core" -I "$core/include" -I "$host" \
    -I "$host/include" {} | wc -c | tr -d ' ')"
within object-bytes "$({
  builtObjects "$products/MLXNativeKernelsCore.build" "$core"
  builtObjects "$products/MLXNativeKernelsHost.build" "$host"
} | xargs size |
  awk '$1 ~ /^[0-9]+$/ { sum += $1 } END { print sum }')"
