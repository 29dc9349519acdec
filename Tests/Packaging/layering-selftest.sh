#!/usr/bin/env bash
# Every wall of .ci/walls can fail: in a copy of the tree, each violation is planted alone and must be refused by
# name.
. "$(dirname "$0")/common.sh"
copy=$scratch/copy
mkdir "$copy"
tar -cf - --exclude ./.git --exclude ./.build --exclude ./Sources/ThirdParty . | tar -xf - -C "$copy"
"$copy/.ci/walls" >"$scratch/output" || {
  cat "$scratch/output" >&2
  fail "the walls are broken before anything was planted"
}

planted=0
# plant WALL FILE TEXT: adds the text at the end of the file, which may be new.
plant() {
  local file=$copy/$2
  mkdir -p "$(dirname "$file")"
  [ ! -f "$file" ] || cp "$file" "$scratch/saved"
  printf '%b\n' "$3" >>"$file"
  if "$copy/.ci/walls" >"$scratch/output" 2>&1; then fail "planted in $2, not refused: $3"; fi
  grep -qF "wall \"$1\"" "$scratch/output" || {
    cat "$scratch/output" >&2
    fail "planted in $2, refused by another wall than \"$1\": $3"
  }
  if [ -f "$scratch/saved" ]; then mv "$scratch/saved" "$file"; else rm "$file"; fi
  planted=$((planted + 1))
}

core=Sources/MLXNativeKernelsCore
wall="Shaders/Types includes only Types"
plant "$wall" Shaders/Types/Planted.h '#include "../Lib/Addressing.h"'
plant "$wall" Shaders/Types/Planted.h '#include <vector>'
plant "Shaders/Lib includes only Types and Lib" Shaders/Lib/Planted.h '#include "../Kernels/KVCacheWrite.metal"'
plant "Shaders/Lib includes only Types and Lib" Shaders/Lib/Planted.h '#include <cmath>'
plant "Shaders/Kernels includes only Types and Lib" Shaders/Kernels/Planted.metal '#include "KVCacheWrite.metal"'
plant "Shaders/Kernels includes only Types and Lib" Shaders/Kernels/Planted.metal '#include "Lib/Addressing.h"'

wall="core rooms name no device"
for room in Support Tensor Encoding Ops Cache; do
  plant "$wall" $core/$room/Planted.cpp '#include "MLXNativeKernels/HostDevice.hpp"'
done
plant "$wall" $core/Ops/Planted.cpp 'MTL::Buffer* buffer;'
plant "$wall" $core/Ops/Planted.cpp '#include <Metal/Metal.hpp>'
plant "$wall" $core/Ops/Planted.cpp '#import <Foundation/Foundation.h>'
plant "$wall" $core/Ops/Planted.cpp 'CUDA context;'
plant "a device folder names no other" $core/Devices/Host/Planted.cpp '#include "../Metal/MetalDevice.hpp"'
plant "a device folder names no other" $core/Devices/CUDA/Planted.cpp '#include "Devices/Host/Fiber.hpp"'
wall="only Devices/Host includes shader code"
plant "$wall" $core/Ops/Planted.cpp '#include "Lib/Addressing.h"'
plant "$wall" $core/Devices/CUDA/Planted.cpp '#include "Kernels/KVCacheWrite.metal"'
plant "CAPI includes only public headers and Support" $core/CAPI/Planted.cpp '#include "Encoding/HazardTracker.hpp"'
plant "CAPI includes only public headers and Support" $core/CAPI/Planted.cpp '#include "Devices/Host/Fiber.hpp"'

plant "Swift sees only the C door" Sources/MLXNativeKernels/Planted.swift 'import CxxStdlib'
plant "examples import the package, and its model" Examples/decode-demo/Planted.swift 'import MLXNativeKernelsCore'
plant "examples import the package, and its model" Examples/decode-demo/Planted.swift '@testable import CoreTests'
plant "the model knows no user interface" Examples/JargonLM/Planted.swift 'import SwiftUI'
plant "views import their model alone" Examples/DecodeDemo/Planted.swift 'import MLXNativeKernels'
plant "no C++ interoperability" Package.swift '.interoperabilityMode(.Cxx)'
plant "references include nothing of Shaders" Tests/Core/PlantedReference.cpp '#include "Kernels/KVCacheWrite.metal"'
plant "references include nothing of Shaders" Tests/Core/Reference/Planted.hpp '#include "Types/KVCacheWriteTypes.h"'

plant "no notes for later" Xcode/README.md "TO""DO"
plant "no notes for later" $core/Ops/Planted.cpp "// FIX""ME: later"
plant "no paths of somebody's machine" Makefile "x := /ro""ot/x"
plant "no paths of somebody's machine" README.md "see /wo""rk/main"
plant "lines end in LF" .editorconfig 'x = y\r'
plant "no file over 400 lines" $core/Ops/Planted.cpp "$(printf '\\n%.0s' $(seq 401))"
say "walls: $planted planted violations were refused"
