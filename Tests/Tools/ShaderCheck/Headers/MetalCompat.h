// The keywords of kernel source for the strict compile. Follows Shaders/Common/MetalCompat.h and replaces five of its
// macros: upstream clang has no function constants, no host names, and no threadgroup variables in functions that are
// not kernels.
#pragma once
#include "BuiltIns.h"
#include "Types.h"

// Kernels are ordinary functions here: OpenCL has no kernel templates.
#define kernel

// OpenCL's keyword, which also makes pointers to it point to const.
#define constant const __constant

// Any other attribute is an error, and so is an undeclared name inside one.
#define buffer(index) clang::annotate("buffer", ::metal::bufferIndex<index>())
#undef threadgroup_memory
#define threadgroup_memory(index) clang::annotate("threadgroup", ::metal::bufferIndex<index>())
#define function_constant(name) clang::annotate("function_constant", sizeof(::metal::asCondition(name)))
#define max_total_threads_per_threadgroup(count) clang::annotate("limit", static_cast<int>(count))

namespace metal {

template <int index>
constexpr int bufferIndex() {
  static_assert(index >= 0 && index <= 30, "a buffer index is 0 to 30");
  return index;
}

bool asCondition(bool);

template <typename T, int count>
struct ThreadgroupArray {
  typedef T Type[count];
};
template <typename T, int count>
__local typename ThreadgroupArray<T, count>::Type& threadgroupArray();

template <int index>
struct FunctionConstant;

template <typename Function>
struct Exported;
template <typename... Parameters>
struct Exported<void(Parameters...)> {
  typedef void Type;
};

}  // namespace metal

#undef threadgroup_array
#define MNK_UNROLL _Pragma("clang loop unroll(full)")
#define MNK_SHARED inline
#define threadgroup_array(type, name, count) \
  __local typename ::metal::ThreadgroupArray<type, count>::Type& name = ::metal::threadgroupArray<type, count>()

// A second constant with the same index redefines a struct.
#undef pipeline_constant
#define pipeline_constant(type, name, index) \
  template <>                                \
  struct metal::FunctionConstant<index> {};  \
  extern __constant type name

#undef instantiate_kernel
#define instantiate_kernel(label, function, ...) template decltype(function<__VA_ARGS__>) function<__VA_ARGS__>;

// Naming a function's type counts as taking its address, which kernel source may not do elsewhere.
#undef export_kernel
#define export_kernel(function)                                                                                     \
  _Pragma(                                                                                                          \
      "OPENCL EXTENSION __cl_clang_function_pointers : enable") typedef ::metal::Exported<decltype(function)>::Type \
      exported_##function;                                                                                          \
  _Pragma("OPENCL EXTENSION __cl_clang_function_pointers : disable")
