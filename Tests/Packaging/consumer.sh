#!/usr/bin/env bash
# A package that depends on this one builds in release, on Linux without a warning from its sources, and runs.
. "$(dirname "$0")/common.sh"
unset MNK_SOFT_METAL MNK_TOOLS MNK_BENCHES MNK_OPTIMIZE MNK_HOST_AVX512  # only for this repository's builds
# SwiftPM refuses a dependency with such flags from a registry or tag.
if swift package dump-package | grep -i unsafeFlags; then fail "a consumer would see unsafe flags (above)"; fi
passed "a consumer sees no unsafe flags"

# Kept between runs, to make a second run quick.
build() {
  swift build -c release --package-path Examples/SwiftConsumer --scratch-path "$PWD/.build/packaging/SwiftConsumer" "$@"
}
build 2>&1 | tee "$scratch/log" || fail "the consumer does not build"
if grep 'warning:' "$scratch/log"; then refuseWarnings "a consumer sees warnings (above)"; fi
passed "a consumer builds in release"

# Run elsewhere, like an installed program.
program=$(build --show-bin-path)/SwiftConsumer
expected='slots 8 9 6 7, attention 7.5'
(cd / && "$program") >"$scratch/output" 2>&1 || {
  cat "$scratch/output"
  grep -q 'this GPU lacks' "$scratch/output" || fail "the consumer's program failed (above)"
  skipped "a consumer's program runs: not on this GPU"
  exit
}
grep -qx "$expected" "$scratch/output" ||
  failShowing "$scratch/output" "the consumer's program printed the above, expected: $expected"
passed "a consumer's program runs"

if ! onMac; then
  # The error ends the program; ignore the shell's message about that.
  if { MNK_DEVICE=metal "$program" >"$scratch/output" 2>&1; } 2>/dev/null; then
    fail "a program on Linux must not find Metal"
  fi
  grep -q 'this system has no Metal' "$scratch/output" ||
    failShowing "$scratch/output" "the error does not say that Metal is unavailable"
  passed "a consumer on Linux gets an error that Metal is unavailable"
fi
