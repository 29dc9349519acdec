#!/usr/bin/env bash
# Every kernel file ships: it is in Package.swift's resources and in the Host device's list, and lists name no other.
. "$(dirname "$0")/common.sh"
hostList=$core/Devices/Host/ShippedKernels.inc

kernels=$(cd Shaders/Kernels && ls -- *.metal) || fail "Shaders/Kernels holds no .metal file"
missing=0
for kernel in $kernels; do
  for list in Package.swift "$hostList"; do
    # Without -q, which would leave the first grep with nobody to write to.
    grep -v '^ *//' "$list" | grep -F "Kernels/$kernel\"" >/dev/null || {
      say "Shaders/Kernels/$kernel is missing from $list"
      missing=1
    }
  done
done
for list in Package.swift "$hostList"; do
  named=$(grep -v '^ *//' "$list" | grep -oE 'Kernels/[A-Za-z0-9_]+\.metal' | sort -u || true)
  for kernel in $named; do
    [ -f "Shaders/$kernel" ] || {
      say "$list names Shaders/$kernel, which is not there"
      missing=1
    }
  done
done
[ "$missing" = 0 ] || fail "kernel lists do not match Shaders/Kernels (above)"
passed "$(printf '%s\n' "$kernels" | wc -l | tr -d ' ') kernel files are in both lists"
