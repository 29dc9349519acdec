// The eight macros that our kernels use in addition to the Metal Shading Language, as defined for a Metal compiler. The
// Host device has its own definitions of these and of Metal's keywords.
#pragma once
#ifdef __METAL_VERSION__

#include <metal_stdlib>
using namespace metal;

// A pragma, because Swift packages cannot pass flags to the Metal compiler, and build systems choose fast math. That
// would fold comparisons with NaN and infinity, which uninitialized rows of a cache may hold. Older compilers lack this
// pragma, so kernels do not rely on it: they test for NaN and infinity by their bits, and a device that loads a
// compiled library probes its math (MathProbe.metal).
#pragma METAL fp math_mode(safe)

// Threadgroup storage inside a kernel: threadgroup_array(float, scratch, 32);
#define threadgroup_array(type, name, count) threadgroup type name[count]

// Attribute of a threadgroup parameter whose size the dispatch gives: threadgroup float* s [[threadgroup_memory(0)]]
#define threadgroup_memory(index) threadgroup(index)

// A function constant: pipeline_constant(bool, hasMask, 0);
// A parameter that depends on one: device const T* v [[buffer(2), function_constant(hasMask)]]. If the constant is
// false, the parameter is undefined, not null, and must not be dereferenced.
#define pipeline_constant(type, name, index) constant type name [[function_constant(index)]]

// Exported instance of a kernel template: instantiate_kernel("copy_f16", copy, half)
#define instantiate_kernel(label, function, ...) \
  template [[host_name(label)]] [[kernel]] decltype(function<__VA_ARGS__>) function<__VA_ARGS__>;

// Before a loop over a thread-local array: the array stays in registers only if the loop is fully unrolled.
#define MNK_UNROLL _Pragma("clang loop unroll(full)")

// Before a long function that many kernel instances call. The Host device does not inline it, which halves compile
// time.
#define MNK_SHARED inline

// Whether a threadgroup can safely read what another threadgroup of the same dispatch has stored. That needs
// device-scope fences, which Metal 3.2 introduced.
#define MNK_HAS_DEVICE_FENCES (__METAL_VERSION__ >= 320)

// Exports a kernel that is not a template: export_kernel(fill). A Metal compiler exports such kernels anyway.
#define export_kernel(function)

#endif
