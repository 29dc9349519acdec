#!/usr/bin/env bash
# The C API serves C: its header is C11 for clang and gcc, and a C program works through it.
. "$(dirname "$0")/common.sh"

strict="-std=c11 -Wall -Wextra -Werror -fsyntax-only"
# shellcheck disable=SC2086  # a list of flags
"$(toolchain clang)" $strict -I "$core/include" Tests/Packaging/c/main.c
passed "mnk.h is C11 to clang"
# On a Mac gcc is another name of clang.
if command -v gcc >/dev/null && ! onMac; then
  # shellcheck disable=SC2086
  gcc $strict -pedantic -I "$core/include" Tests/Packaging/c/main.c
  passed "mnk.h is C11 to gcc"
else
  skipped "mnk.h is C11 to gcc: no gcc here"
fi

"$products/c-api-test" || fail "the C program found faults (above)"
passed "a C program writes, quantizes and attends through the C API"
