#!/usr/bin/env bash
# MNK_DEVICE selects the device of an unmodified program.
. "$(dirname "$0")/common.sh"
demo=$products/decode-demo
if onMac; then
  skipped "choice of a device: written for Linux"
  exit
fi

# printed TEXT: the output contains TEXT.
printed() {
  grep -qF "$1" "$scratch/output" || failShowing "$scratch/output" "the demo does not print: $1"
}
if MNK_DEVICE=gpu "$demo" >"$scratch/output" 2>&1; then fail "MNK_DEVICE=gpu is accepted as a device"; fi
printed 'environment variable MNK_DEVICE names no device'
passed "a device that does not exist is refused"

for kind in host metal; do
  MNK_DEVICE=$kind "$demo" --tokens 12 --passage 12 >"$scratch/$kind" 2>&1 ||
    failShowing "$scratch/$kind" "the demo fails with MNK_DEVICE=$kind"
done
cp "$scratch/host" "$scratch/output" && printed 'Host ('
cp "$scratch/metal" "$scratch/output" && printed 'Soft M1'
passed "the demo runs on the Host device and on the software Metal"

MNK_DEVICE=metal MNK_SOFT_METAL_MACHINE=paravirtual "$demo" --tokens 2 --no-table >"$scratch/output" 2>&1 ||
  failShowing "$scratch/output" "the demo fails if the GPU lacks required features"
printed 'Apple Paravirtual device'
printed 'The kernels run on the CPU instead.'
printed 'Host ('
passed "the demo runs on the Host device in a virtual machine, and says so"
