#!/usr/bin/env bash
# The clang module is exactly the C API: C can import it, and it reaches no C++ header.
. "$(dirname "$0")/common.sh"
clang=$(toolchain clang)

cat >"$scratch/import.c" <<'C'
#pragma clang module import MLXNativeKernelsCore
size_t devices(void) { return mnk_device_count(); }
C
"$clang" -fmodules -fmodules-cache-path="$scratch/cache" -I "$core/include" -Werror -fsyntax-only "$scratch/import.c"
passed "C imports the module"

for language in c c++; do
  "$clang" -x "$language" -MM -I "$core/include" "$core/include/MLXNativeKernels/MLXNativeKernels.h" >"$scratch/reached"
  grep -q 'mnk\.h' "$scratch/reached" || fail "the umbrella does not include mnk.h"
  if grep -E '\.hpp' "$scratch/reached"; then fail "the umbrella reaches a C++ header in $language (above)"; fi
done
if grep -nE '\.hpp|umbrella' "$core/include/module.modulemap"; then fail "the module map names C++ headers (above)"; fi
passed "no C++ header is reachable from the module"
