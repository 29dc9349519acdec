#!/usr/bin/env bash
# Shows that every rule of .ci/layering can fail: each violation, added alone to a copy of the tree, must be refused.
. "$(dirname "$0")/common.sh"
copy=$scratch/copy
mkdir "$copy"
tar -cf - --exclude ./.git --exclude ./.build --exclude ./Sources/ThirdParty . | tar -xf - -C "$copy"
"$copy/.ci/layering" >"$scratch/output" || failShowing "$scratch/output" "a rule is broken before anything was added"

seeded=0
# seed RULE FILE TEXT: appends the text to the file, which may be new.
seed() {
  local file=$copy/$2
  mkdir -p "$(dirname "$file")"
  [ ! -f "$file" ] || cp "$file" "$scratch/saved"
  printf '%b\n' "$3" >>"$file"
  if "$copy/.ci/layering" >"$scratch/output" 2>&1; then fail "added to $2, not refused: $3"; fi
  grep -qF "rule \"$1\"" "$scratch/output" ||
    failShowing "$scratch/output" "added to $2, refused by another rule than \"$1\": $3"
  if [ -f "$scratch/saved" ]; then mv "$scratch/saved" "$file"; else rm "$file"; fi
  seeded=$((seeded + 1))
}

core=Sources/MLXNativeKernelsCore
host=Sources/MLXNativeKernelsHost
rule="types of shaders include only types"
seed "$rule" Shaders/Hadamard/SeededTypes.h '#include "../Common/Elements.h"'
seed "$rule" Shaders/Common/SeededTypes.h '#include <vector>'
seed "Shaders/Common includes only Common" Shaders/Common/Seeded.h '#include "../KVCacheWrite/KVCacheWrite.metal"'
seed "Shaders/Common includes only Common" Shaders/Common/Seeded.h '#include <cmath>'
rule="a shader folder includes only itself and Common"
seed "$rule" Shaders/Hadamard/Seeded.metal '#include "KVCacheWrite.metal"'
seed "$rule" Shaders/Hadamard/Seeded.metal '#include "../FlashDecode/OnlineSoftmax.h"'
seed "$rule" Shaders/MergePartials/Seeded.metal '#include "../Hadamard/HadamardTypes.h"'

rule="only Devices names a device"
for folder in Support Runtime Ops Cache Prepare; do
  seed "$rule" $core/$folder/Seeded.cpp '#include "MLXNativeKernels/HostDevice.hpp"'
done
seed "$rule" $core/Ops/Seeded.cpp 'MTL::Buffer* buffer;'
seed "$rule" $core/Ops/Seeded.cpp '#include <Metal/Metal.hpp>'
seed "$rule" $core/Ops/Seeded.cpp '#import <Foundation/Foundation.h>'
seed "$rule" $core/Ops/Seeded.cpp 'CUDA context;'
seed "Support uses nothing above it" $core/Support/Seeded.cpp '#include "Runtime/HazardTracker.hpp"'
seed "Runtime uses no op" $core/Runtime/Seeded.cpp '#include "Ops/FlashDecode/FlashDecode.hpp"'
seed "Runtime uses no op" $core/Runtime/Seeded.cpp '#include "Cache/CacheCursors.hpp"'
seed "a device names no other" $core/Devices/Metal/Seeded.cpp '#include "HostDevice.hpp"'
seed "a device names no other" $host/Seeded.cpp '#include "Devices/Metal/MetalDevice.hpp"'
seed "the core does not use the Host device" $core/ObjC/Seeded.mm '#include "Executor/Fiber.h"'
rule="only the Host device includes shader code"
seed "$rule" $core/Ops/Seeded.cpp '#include "Common/Elements.h"'
seed "$rule" $core/Devices/Metal/Seeded.cpp '#include "KVCacheWrite/KVCacheWrite.metal"'
seed "CAPI includes only public headers and Support" $core/CAPI/Seeded.cpp '#include "Runtime/HazardTracker.hpp"'
seed "CAPI includes only public headers and Support" $core/CAPI/Seeded.cpp '#include "Executor/Fiber.h"'
seed "the core includes each header in one way" $host/Seeded.cpp '#include <MLXNativeKernels/Tensor.hpp>'
seed "the core includes each header in one way" $core/ObjC/Seeded.mm '#import "MLXNativeKernels/MNKTensor.h"'

seed "no library features that Xcode 16.3 lacks" $core/Runtime/Seeded.cpp 'std::jthread thread;'
seed "no library features that Xcode 16.3 lacks" Tests/Core/Seeded.cpp 'std::atomic_ref<int> counted(count);'
seed "scripts run in bash 3.2" .ci/seeded 'mapfile -t lines <file'
seed "scripts run in bash 3.2" Tests/Packaging/test-seeded.sh 'say "$BASHPID"'

seed "Swift sees only the C API" Sources/MLXNativeKernels/Seeded.swift 'import CxxStdlib'
seed "examples import the package, and its model" Examples/decode-demo/Seeded.swift 'import MLXNativeKernelsCore'
seed "examples import the package, and its model" Examples/decode-demo/Seeded.swift '@testable import MLXNativeKernelsCoreTests'
seed "the model knows no user interface" Examples/JargonLM/Seeded.swift 'import SwiftUI'
seed "views import only SwiftUI" Examples/DecodeDemo/Seeded.swift 'import MLXNativeKernels'
seed "no C++ interoperability" Package.swift '.interoperabilityMode(.Cxx)'
seed "references include nothing of Shaders" Tests/Core/SeededReference.cpp '#include "KVCacheWrite/KVCacheWrite.metal"'
seed "references include nothing of Shaders" Tests/Core/Ops/SeededReference.hpp '#include "KVCacheWrite/KVCacheWriteTypes.h"'

seed "no notes for later" Xcode/README.md "TO""DO"
seed "no notes for later" $core/Ops/Seeded.cpp "// FIX""ME: later"
seed "no paths of one machine" Makefile "x := /ro""ot/x"
seed "no paths of one machine" README.md "see /wo""rk/main"
seed "lines end in LF" .editorconfig 'x = y\r'
seed "no file over 400 lines, or 600 of C++" $core/Ops/Seeded.cpp "$(printf '\\n%.0s' $(seq 601))"
seed "no file over 400 lines, or 600 of C++" $core/Ops/Seeded.hpp "$(printf '\\n%.0s' $(seq 401))"
seed "files in Unified include each .cpp file once, because SwiftPM compiles no other" $core/Ops/Hadamard/Seeded.cpp ''
seed "files in Unified include each .cpp file once, because SwiftPM compiles no other" $host/Unified/Device.cpp '#include "HostDevice.cpp"'

say "layering: $seeded added violations were refused"
