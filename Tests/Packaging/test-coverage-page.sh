#!/usr/bin/env bash
# Every test that the documentation names exists.
. "$(dirname "$0")/common.sh"
page=Sources/MLXNativeKernels/MLXNativeKernels.docc/Coverage.md
whereItRuns=Sources/MLXNativeKernels/MLXNativeKernels.docc/WhereItRuns.md

# shellcheck disable=SC2046  # a list of words
sed -nE 's/^TEST\(([A-Za-z0-9]+), ([A-Za-z0-9]+)\).*$/\1.\2/p' $(find Tests/Core -name '*.cpp') >"$scratch/tests"
grep -oE '`[A-Z][A-Za-z0-9]+\.([A-Z][A-Za-z0-9]+|\*)`' "$page" "$whereItRuns" -h | tr -d '`' | grep -vx 'Suite\.Name' |
  sort -u >"$scratch/named"
copies=$(grep -cE '^\| `kv_cache_' "$page" || true)
[ "$copies" = 14 ] || fail "$page lists $copies cache copies, expected 14"

missing=0
while read -r name; do
  case $name in
  *'.*') grep -q "^${name%\*}" "$scratch/tests" ;;
  *) grep -qx "$name" "$scratch/tests" ;;
  esac || {
    say "a page names the test $name, which does not exist"
    missing=1
  }
done <"$scratch/named"
[ "$missing" = 0 ] || fail "the documentation names tests that do not exist (above)"
passed "$(wc -l <"$scratch/named" | tr -d ' ') tests and suites named by the documentation exist"
