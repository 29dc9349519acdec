#!/usr/bin/env bash
# The constants of the codec are what the program of Tests/Tools/CodecTables computes, and a change of one digit is noticed.
. "$(dirname "$0")/common.sh"

.ci/make-tables --check >/dev/null
passed "tables of the codec are current"

header=Shaders/Common/TurboTables.h
mkdir -p "$scratch/.build" "$scratch/Shaders/Common" "$scratch/Shaders/KVCacheQuantize" "$scratch/Tests/Tools"
cp -R .ci "$scratch"
cp -R Tests/Tools/CodecTables "$scratch/Tests/Tools"
cp -R .build/tables "$scratch/.build"
sed 's/0\.12839504f/0.12839505f/' "$header" >"$scratch/$header"
if cmp -s "$scratch/$header" "$header"; then fail "nothing to change in $header"; fi
if "$scratch/.ci/make-tables" --check >"$scratch/said" 2>&1; then fail "not noticed: another digit in a level"; fi
grep -q 'Run: make tables' "$scratch/said" || {
  cat "$scratch/said" >&2
  fail "another digit in a level: refused, but not as stale"
}
"$scratch/.ci/make-tables" >/dev/null
cmp "$scratch/$header" "$header"
passed "stale tables of the codec are noticed"
