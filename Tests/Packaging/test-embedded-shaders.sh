#!/usr/bin/env bash
# The files generated from Shaders/ are current, and a change of one byte is detected.
. "$(dirname "$0")/common.sh"

.ci/embed-shaders check
passed "embedded shaders and their stamp are current"

# refuses WHAT: the check must fail in the copy as it is now.
refuses() {
  if "$scratch/.ci/embed-shaders" check >"$scratch/output" 2>&1; then fail "not detected: $1"; fi
  grep -q 'Run: make embed' "$scratch/output" || failShowing "$scratch/output" "$1: refused, but not as stale"
}
mkdir -p "$scratch/$core/Devices" "$scratch/$host"
cp -R .ci Shaders "$scratch"
cp -R "$core/Devices/Metal" "$scratch/$core/Devices"
cp -R "$host/Shipped" "$scratch/$host"
embedded=$core/Devices/Metal/EmbeddedShaders.inc
before=$(cat Shaders/Runtime/Stamp.h)

header=Shaders/Common/CacheAddress.h
sed 's/slot -= p.capacity/slot += p.capacity/' "$header" >"$scratch/$header"
if cmp -s "$scratch/$header" "$header"; then fail "nothing to change in $header"; fi
refuses "another byte in a header of a kernel"
"$scratch/.ci/embed-shaders" >/dev/null
"$scratch/.ci/embed-shaders" check
[ "$(cat "$scratch/Shaders/Runtime/Stamp.h")" != "$before" ] || fail "a different text has the same stamp"
cp "$header" "$scratch/$header"
refuses "a header put back"
"$scratch/.ci/embed-shaders" >/dev/null
[ "$(cat "$scratch/Shaders/Runtime/Stamp.h")" = "$before" ] || fail "the same text has a different stamp"
cmp "$scratch/$embedded" "$embedded"

printf '\n' >>"$scratch/$embedded"
refuses "a change of the embedded text by hand"
"$scratch/.ci/embed-shaders" >/dev/null
say '#define MNK_SHADER_STAMP "mnkStamp_0"' >"$scratch/Shaders/Runtime/Stamp.h"
refuses "a change of the stamp by hand"
passed "stale embedded shaders are noticed"

cp "$header" "$scratch/$header"
say '#include "MetalCompat.h"' >>"$scratch/$header"
if "$scratch/.ci/embed-shaders" >"$scratch/output" 2>&1; then fail "a header that is included late is moved silently"; fi
grep -q "$header:.*: a package header is included after other text" "$scratch/output" || fail "refused for the wrong reason"
passed "headers come first"
