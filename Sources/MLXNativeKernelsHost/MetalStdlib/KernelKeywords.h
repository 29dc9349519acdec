// The keywords of Metal Shading Language and MetalCompat.h, as macros, and rules of the Metal compiler that C++20
// lacks. Everything after this header is kernel source.
#pragma once
#include "Atomics.h"
#include "KernelArguments.h"
#include "Lanes.h"
#include "SimdgroupMatrix.h"

#pragma clang diagnostic ignored "-Wunknown-attributes"
#pragma clang diagnostic ignored "-Wduplicate-decl-specifier"
#pragma clang diagnostic ignored "-Wdeprecated-comma-subscript"
#pragma clang diagnostic ignored "-Wignored-qualifiers"  // see `static`
#pragma clang diagnostic ignored "-Wunused-function"
#pragma clang diagnostic ignored "-Wunused-const-variable"
#pragma clang diagnostic error "-Wpre-c++17-compat"  // Metal 3 is C++14
#pragma clang diagnostic error "-Wpre-c++20-compat"
#pragma clang diagnostic error "-Wdouble-promotion"    // 0.5 * x instead of 0.5f * x
#pragma clang diagnostic error "-Wignored-attributes"  // see `threadgroup`
#pragma clang diagnostic error "-Wvla"
#pragma clang diagnostic error "-Wexit-time-destructors"
#pragma clang diagnostic error "-Wglobal-constructors"

#define kernel
// The Metal compiler inlines every function; this keeps a lane's address arithmetic in registers.
#define inline inline __attribute__((always_inline))
// Metal has no variable that persists across threads; here it would be shared by the whole process. As a side effect, a
// static function cannot return a pointer to mutable data; use `inline` instead.
#define static const static
#define device
#define thread
#define constant const
// Harmless on pointers and references. On a variable, clang warns that the attribute does not apply, which catches
// `threadgroup float s[32];` (it would be one array per lane): use threadgroup_array.
#define threadgroup __attribute__((align_value(1)))

#define MNK_HOST_ARGUMENT(source) ]] = ::mnk::host::source[::mnk::host::at[::mnk::host::Always{}
#define buffer(index) MNK_HOST_ARGUMENT(bufferArgument<index>)
#define threadgroup_memory(index) MNK_HOST_ARGUMENT(threadgroupArgument<index>)
#define function_constant(name) ::mnk::host::Optional(static_cast<bool>(name))
#define is_function_constant_defined(name) ::mnk::host::isConstantSet(name)

#define thread_position_in_grid MNK_HOST_ARGUMENT(threadPositionInGrid)
#define thread_position_in_threadgroup MNK_HOST_ARGUMENT(threadPositionInThreadgroup)
#define thread_index_in_threadgroup MNK_HOST_ARGUMENT(threadIndexInThreadgroup)
#define thread_index_in_simdgroup MNK_HOST_ARGUMENT(threadIndexInSimdgroup)
#define thread_index_in_quadgroup MNK_HOST_ARGUMENT(threadIndexInQuadgroup)
#define simdgroup_index_in_threadgroup MNK_HOST_ARGUMENT(simdgroupIndexInThreadgroup)
#define quadgroup_index_in_threadgroup MNK_HOST_ARGUMENT(quadgroupIndexInThreadgroup)
#define simdgroups_per_threadgroup MNK_HOST_ARGUMENT(simdgroupsPerThreadgroup)
#define quadgroups_per_threadgroup MNK_HOST_ARGUMENT(quadgroupsPerThreadgroup)
#define dispatch_simdgroups_per_threadgroup MNK_HOST_ARGUMENT(dispatchSimdgroupsPerThreadgroup)
#define threads_per_simdgroup MNK_HOST_ARGUMENT(threadsPerSimdgroup)
#define thread_execution_width MNK_HOST_ARGUMENT(threadsPerSimdgroup)
#define threadgroup_position_in_grid MNK_HOST_ARGUMENT(threadgroupPositionInGrid)
#define threads_per_threadgroup MNK_HOST_ARGUMENT(threadsPerThreadgroup)
#define dispatch_threads_per_threadgroup MNK_HOST_ARGUMENT(dispatchThreadsPerThreadgroup)
#define threadgroups_per_grid MNK_HOST_ARGUMENT(threadgroupsPerGrid)
#define threads_per_grid MNK_HOST_ARGUMENT(threadsPerGrid)

#define MNK_HOST_PASTE_(a, b) a##b
#define MNK_HOST_PASTE(a, b) MNK_HOST_PASTE_(a, b)
#define MNK_HOST_STATIC_OBJECT(...)                                                              \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wglobal-constructors\"") \
      _Pragma("clang diagnostic ignored \"-Wexit-time-destructors\"") __VA_ARGS__;               \
  _Pragma("clang diagnostic pop")

// With few registers, a CPU gains nothing from unrolling, and its compiler takes long.
#define MNK_UNROLL
// `inline` implies always_inline here; noinline wins.
#define MNK_SHARED __attribute__((noinline)) inline

#define MNK_HAS_DEVICE_FENCES 1

#define threadgroup_array(type, name, count) type(&name)[count] = ::mnk::host::threadgroupArray<type, count>([] {})

#define pipeline_constant(type, name, index)                                                             \
  constexpr ::mnk::host::PipelineConstant<type, index> name{#name, __FILE__, __LINE__};                  \
  MNK_HOST_STATIC_OBJECT(const ::mnk::host::ConstantRegistration MNK_HOST_PASTE(constant_, __COUNTER__)( \
      MNK_HOST_LIBRARY, #name, __FILE__, __LINE__, index, ::mnk::host::ValueTypeOf<type>::value))        \
  static_assert(true, "")

// A file that needs only some kernels defines this first: the others are not registered, and their templates are not
// instantiated.
#ifndef MNK_HOST_WANTS
#define MNK_HOST_WANTS(name) true
#endif

// The lane loop is next to the kernel, whose body is inlined into it. Its names must not hide the kernel's. It is a
// template, so that an unwanted kernel costs nothing.
#define MNK_HOST_EXPORT(id, name, ...)                                                                                 \
  template <bool mnkIsWanted_>                                                                                         \
  void MNK_HOST_PASTE(runLanes_, id)(::mnk::host::Threadgroup * mnkGroup_, uint mnkFirst_, uint mnkLast_) {            \
    for (::mnk::host::LaneLoop mnkLoop_(mnkGroup_, mnkFirst_, mnkLast_); mnkLoop_.more(); mnkLoop_.advance()) {        \
      __VA_ARGS__();                                                                                                   \
    }                                                                                                                  \
  }                                                                                                                    \
  template <>                                                                                                          \
  void MNK_HOST_PASTE(runLanes_, id)<false>(::mnk::host::Threadgroup*, uint, uint) {}                                  \
  MNK_HOST_STATIC_OBJECT(const ::mnk::host::KernelRegistration MNK_HOST_PASTE(kernel_, id)(                            \
      MNK_HOST_LIBRARY, name, __FILE__, MNK_HOST_LEVEL, ::mnk::host::kPointerParameters<decltype(&__VA_ARGS__)>.count, \
      ::mnk::host::kPointerParameters<decltype(&__VA_ARGS__)>.list,                                                    \
      &MNK_HOST_PASTE(runLanes_, id) < MNK_HOST_WANTS(name) >, MNK_HOST_WANTS(name)))
#define instantiate_kernel(name, function, ...) MNK_HOST_EXPORT(__COUNTER__, name, function<__VA_ARGS__>)
#define export_kernel(function) MNK_HOST_EXPORT(__COUNTER__, #function, function)

// C++ keywords that Metal lacks; the macros above keep their copies.
#pragma GCC poison double goto try catch throw new virtual typeid dynamic_cast thread_local asm std
