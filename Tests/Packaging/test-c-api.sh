#!/usr/bin/env bash
# The C API's header is valid C11 for clang and gcc, and a C program works with it.
. "$(dirname "$0")/common.sh"

strict="-std=c11 -Wall -Wextra -Werror -fsyntax-only"
# shellcheck disable=SC2086  # a list of flags
"$(toolchain clang)" $strict -I "$core/include" Tests/Packaging/c/main.c
passed "mnk.h is C11 to clang"
# On a Mac, gcc is clang.
if command -v gcc >/dev/null && ! onMac; then
  # shellcheck disable=SC2086
  gcc $strict -pedantic -I "$core/include" Tests/Packaging/c/main.c
  passed "mnk.h is C11 to gcc"
else
  skipped "mnk.h is C11 to gcc: no gcc here"
fi

"$products/c-api-test" >"$scratch/output" || fail "the C program found faults (above)"
if grep '^skipped: ' "$scratch/output"; then exit; fi
passed "a C program writes and attends through the C API"
if ! onMac; then
  MNK_DEVICE=metal MNK_SOFT_METAL_MACHINE=paravirtual "$products/c-api-test" >"$scratch/output"
  grep -q '^skipped: .*Apple Paravirtual device' "$scratch/output" || fail "it says nothing: $(cat "$scratch/output")"
  passed "in a virtual machine it says why it is skipped"
fi
