// The eight words that our kernels use beyond plain Metal Shading Language, in their Metal form.
// The Host device defines these words, and all others of the language, by itself.
#pragma once
#ifdef __METAL_VERSION__

#include <metal_stdlib>
using namespace metal;

// Set in the text because Swift packages cannot pass flags to the Metal compiler. Fast math would fold comparisons with
// NaN and infinity, which caches may hold in rows that nobody has written yet. Older compilers do not know the word, so
// kernels must not rely on it: they tell NaN and infinity by their bits.
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif

// Threadgroup storage inside a kernel: threadgroup_array(float, scratch, 32);
#define threadgroup_array(type, name, count) threadgroup type name[count]

// Attribute of a threadgroup parameter whose size the dispatch gives: threadgroup float* s [[threadgroup_memory(0)]]
#define threadgroup_memory(index) threadgroup(index)

// Value fixed when the pipeline is made: pipeline_constant(bool, hasMask, 0);
// A parameter that depends on one: device const T* v [[buffer(2), function_constant(hasMask)]]. Where the constant is
// false the parameter has no value, not even null: nothing may be read or written through it.
#define pipeline_constant(type, name, index) constant type name [[function_constant(index)]]

// Exported instance of a kernel template: instantiate_kernel("copy_f16", copy, half)
#define instantiate_kernel(label, function, ...) \
  template [[host_name(label)]] [[kernel]] decltype(function<__VA_ARGS__>) function<__VA_ARGS__>;

// Before a loop over an array of a thread's own: only where the loop is unrolled can the array stay in registers.
#define MNK_UNROLL _Pragma("clang loop unroll(full)")

// Before a long function that many instances call. The Host device compiles one copy for all of them, in half the time.
#define MNK_SHARED inline

// Whether a threadgroup can be sure to read what another one of its dispatch has stored: fences for the whole device
// came with Metal 3.2.
#define MNK_HAS_DEVICE_FENCES (__METAL_VERSION__ >= 320)

// Exports a kernel that is not a template, which a Metal library does by itself: export_kernel(fill)
#define export_kernel(function)

#endif
