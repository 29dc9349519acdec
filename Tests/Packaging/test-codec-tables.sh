#!/usr/bin/env bash
# The codec constants match what Tests/Tools/CodecTables computes, and a change of one digit is detected.
. "$(dirname "$0")/common.sh"

.ci/make-tables --check >/dev/null
passed "tables of the codec are current"

header=Shaders/Common/TurboTables.h
mkdir -p "$scratch/Shaders/Common" "$scratch/Shaders/KVCacheQuantize" "$scratch/Tests/Tools"
cp -R .ci "$scratch"
cp -R Tests/Tools/CodecTables "$scratch/Tests/Tools"
cp Shaders/Common/Mlx1Tables.h "$scratch/Shaders/Common"
sed 's/0\.12839504f/0.12839505f/' "$header" >"$scratch/$header"
if cmp -s "$scratch/$header" "$header"; then fail "nothing to change in $header"; fi
if "$scratch/.ci/make-tables" --check >"$scratch/output" 2>&1; then fail "not detected: a changed digit in a level"; fi
grep -q 'Run: make tables' "$scratch/output" ||
  failShowing "$scratch/output" "a changed digit in a level: refused, but not as stale"
"$scratch/.ci/make-tables" >/dev/null
cmp "$scratch/$header" "$header"
passed "stale tables of the codec are noticed"
