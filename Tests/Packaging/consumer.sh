#!/usr/bin/env bash
# A package that depends on this one builds in release without a warning from our sources, and runs.
. "$(dirname "$0")/common.sh"
unset MNK_SOFT_METAL MNK_TOOLS MNK_BENCHES MNK_OPTIMIZE MNK_HOST_AVX512  # what only our own builds ask for
# SwiftPM refuses a package of a registry or a tag with such flags.
if swift package dump-package | grep -i unsafeFlags; then fail "a consumer would see unsafe flags (above)"; fi
passed "a consumer sees no unsafe flags"

# Kept between runs, so that a second run is quick.
build() {
  swift build -c release --package-path Examples/SwiftConsumer --scratch-path "$PWD/.build/packaging/SwiftConsumer" "$@"
}
build 2>&1 | tee "$scratch/log" || fail "the consumer does not build"
if grep 'warning:' "$scratch/log"; then fail "a consumer sees warnings (above)"; fi
passed "a consumer builds in release without warnings"

# Run elsewhere, as an installed program would.
program=$(build --show-bin-path)/SwiftConsumer
expected='slots 8 9 6 7, attention 7.5'
(cd / && "$program") >"$scratch/output" 2>&1 || {
  cat "$scratch/output"
  grep -q 'this GPU lacks' "$scratch/output" || fail "the consumer's program failed (above)"
  skipped "a consumer's program runs: not on this GPU"
  exit
}
grep -qx "$expected" "$scratch/output" || {
  cat "$scratch/output" >&2
  fail "the consumer's program printed the above, expected: $expected"
}
passed "a consumer's program runs"

if ! onMac; then
  # The error ends the program; what the shell says of that is not of interest.
  if { MNK_DEVICE=metal "$program" >"$scratch/output" 2>&1; } 2>/dev/null; then
    fail "a consumer's program found Metal on Linux"
  fi
  grep -q 'this system has no Metal' "$scratch/output" || {
    cat "$scratch/output" >&2
    fail "a consumer on Linux is not told that there is no Metal"
  }
  passed "a consumer on Linux is told that there is no Metal"
fi
