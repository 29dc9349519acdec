#!/usr/bin/env bash
# A program may link this package and another user of metal-cpp, such as mlx-swift: their definitions of metal-cpp's
# symbols do not clash in any order, and all copies are initialized.
. "$(dirname "$0")/common.sh"
. .ci/apple.sh
.ci/metal-cpp 14
onMac || .ci/darwin-headers
flags="-std=c++20 -O1 -fblocks"
definitions=$core/Devices/Metal/MetalCppDefinitions.cpp

# What metal-cpp's README asks every program to do.
cat >"$scratch/Strong.cpp" <<'CXX'
#define NS_PRIVATE_IMPLEMENTATION
#define MTL_PRIVATE_IMPLEMENTATION
#include <Foundation/Foundation.hpp>
#include <Metal/Metal.hpp>
CXX

# A user of the symbols, with stubs of the system frameworks.
cat >"$scratch/main.cpp" <<'CXX'
#include "Devices/Metal/MetalCpp.hpp"
#ifdef __linux__
#include <set>
#include <string>
static const char* named(const char* name) {
  static std::set<std::string> names;
  return names.insert(name).first->c_str();
}
extern "C" {
Class objc_lookUpClass(const char* name) { return (Class)named(name); }
Protocol* objc_getProtocol(const char* name) { return (Protocol*)named(name); }
SEL sel_registerName(const char* name) { return (SEL)named(name); }
void objc_msgSend() {}
void objc_msgSend_stret() {}
void objc_msgSend_fpret() {}
MTL::Device* MTLCreateSystemDefaultDevice() { return nullptr; }
NS::Array* MTLCopyAllDevices() { return nullptr; }
NS::Array* MTLCopyAllDevicesWithObserver(NS::Object**, MTL::DeviceNotificationHandlerBlock) { return nullptr; }
void MTLRemoveDeviceObserver(const NS::Object*) {}
void _Block_object_assign(void*, const void*, int) {}
void _Block_object_dispose(const void*, int) {}
void* _NSConcreteStackBlock[32];
}
#endif
int main() {
  MTL::CreateSystemDefaultDevice();
  return MTL::Private::Class::s_kMTLCompileOptions == objc_lookUpClass("MTLCompileOptions") &&
         NS::Private::Selector::s_kUTF8String == sel_registerName("UTF8String") ? 0 : 1;
}
CXX

# compile NAME SOURCE FLAGS…
compile() {
  local object=$scratch/$1.o source=$2
  shift 2
  # shellcheck disable=SC2086  # a list of words
  "$(toolchain clang++)" $flags -I "$core" -isystem .build/metal-cpp/14 "$@" -c "$source" -o "$object"
}

if "$(toolchain clang++)" $flags -I "$core" -fsyntax-only "$scratch/main.cpp" >"$scratch/output" 2>&1 ||
  ! grep -q 'error: "metal-cpp is missing: `git submodule' "$scratch/output"; then
  cat "$scratch/output" >&2
  fail "without metal-cpp's headers, the error does not say how to get them"
fi
passed "a missing submodule is named, with the command that fetches it"

# compileAll KIND FLAGS…
compileAll() {
  local kind=$1
  shift
  compile "$kind-ours" "$definitions" "$@"
  cp "$scratch/$kind-ours.o" "$scratch/$kind-again.o"
  compile "$kind-strong" "$scratch/Strong.cpp" "$@"
  cp "$scratch/$kind-strong.o" "$scratch/$kind-other.o"
}

# clashes KIND LINKER…: two strong copies must clash, and all other combinations must link without output.
clashes() {
  local kind=$1 objects order
  shift
  if "$@" "$scratch/$kind-strong.o" "$scratch/$kind-other.o" -o "$scratch/program" >"$scratch/output" 2>&1; then
    fail "two strong copies of metal-cpp link ($kind): this test detects nothing"
  fi
  grep -qi 'duplicate symbol' "$scratch/output" ||
    failShowing "$scratch/output" "two strong copies of metal-cpp are refused, but not as duplicate symbols ($kind)"
  for order in "ours again" "again strong ours" "strong ours again"; do
    # shellcheck disable=SC2086  # a list of words
    objects=$(printf "$scratch/$kind-%s.o " $order)
    # shellcheck disable=SC2086
    "$@" $objects -o "$scratch/program" || fail "copies of metal-cpp's definitions clash ($kind: $order)"
    [ "$kind" = macho ] || "$scratch/program" || fail "classes and selectors are not set up ($kind: $order)"
  done
}

if onMac; then
  compileAll native
  compile main "$scratch/main.cpp"
  clashes native "$(toolchain clang++)" "$scratch/main.o" -framework Foundation -framework Metal
else
  # The strong copy checks only Apple's name for the architecture.
  [ "$(uname -m)" != aarch64 ] || flags="$flags -D__arm64__"
  compileAll native -I "$appleSDK"
  compile main "$scratch/main.cpp" -I "$appleSDK"
  clashes native "$(toolchain clang++)" -fuse-ld=lld "$scratch/main.o" -ldl
fi
passed "definitions of metal-cpp link beside a strong copy in every order"

if ! onMac; then
  processor=$(uname -m)
  [ "$processor" != aarch64 ] || processor=arm64
  # The toolchain's linker refuses objects marked as macOS; otherwise they are the same.
  # shellcheck disable=SC2046  # a list of words
  compileAll macho $(appleCxxFlags) $(appleFlags "$processor-apple-none-macho")
  clashes macho "$(toolchain ld64.lld)" -arch "$processor" -platform_version macos 14.0 14.0 -dylib \
    -undefined dynamic_lookup
  passed "they do so in Mach-O, the Mac's format, too"
fi
