#!/usr/bin/env bash
# Every message that the Metal device sends is implemented by the software Metal, is sent by its tests, and is listed in
# metal-selectors.txt.
. "$(dirname "$0")/common.sh"
objects=$products/MLXNativeKernelsCore.build/UnifiedMetal
list=Tests/Packaging/metal-selectors.txt
if onMac; then
  skipped "selectors of the Metal device: the software Metal is for Linux"
  exit
fi

# metal-cpp looks up each selector through a variable, which the code that sends it references.
nm -C --undefined-only "$objects"/*.o | sed -nE 's/.*(NS|MTL)::Private::Selector::s_k([A-Za-z0-9_]+)$/\2/p' | tr _ : |
  sort -u >"$scratch/used"
[ -s "$scratch/used" ] || fail "no selectors are found in $objects"

MNK_SELECTORS=$scratch/lists "$products/core-tests" selectors --only Metal >"$scratch/log" ||
  failShowing "$scratch/log" "tests of the Metal device fail"
for kind in sent implemented; do
  sed -nE "s/^$kind [+-]\\[[A-Za-z]+ (.*)\\]\$/\\1/p" "$scratch/lists" | sort -u >"$scratch/$kind"
done
missing=$(comm -23 "$scratch/used" "$scratch/implemented")
[ -z "$missing" ] || fail "the software Metal does not implement:" $missing
passed "all $(wc -l <"$scratch/used") selectors of the Metal device are implemented by the software Metal," \
  "which has $(wc -l <"$scratch/implemented")"

# metal-cpp requests a signature only if an object does not respond; all objects here do.
silent=$(comm -23 "$scratch/used" "$scratch/sent" | grep -vx methodSignatureForSelector: || true)
[ -z "$silent" ] || fail "no test sends:" $silent
passed "each of them is sent while the tests of the device run"

tr ',' '\n' <"$list" | tr -d ' ' | sort -u >"$scratch/listed"
difference=$(comm -3 "$scratch/used" "$scratch/listed" | tr -d '\t')
[ -z "$difference" ] || fail "$list lists other selectors than the Metal device uses:" $difference
passed "$list lists each of them"
