// What the text of kernels needs besides functions: atomic operations, arguments, and the keywords of Metal.
#pragma once
#include "Executor/Module.h"
#include "Executor/Worker.h"
#include "MetalStdlib/Common.h"
#include "MetalStdlib/Lanes.h"
#include "MetalStdlib/SimdgroupMatrix.h"
#include "MetalStdlib/Simdgroups.h"

// Relaxed atomic operations, as in Metal, and the fence that orders them.
#if MNK_HOST_CHECKED  // out of line, so that checks treat the access as atomic
#define MNK_HOST_ATOMIC inline MNK_HOST_RUNTIME __attribute__((noinline))
#define MNK_HOST_TELL(kind) \
  mnk::host::check::atomicAccess(mnk::host::AccessKind::kind, object, sizeof *object, __builtin_return_address(0))
#else
#define MNK_HOST_ATOMIC MNK_HOST_INLINE
#define MNK_HOST_TELL(kind) static_cast<void>(0)
#endif

namespace metal {

enum memory_order { memory_order_relaxed, memory_order_seq_cst };
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };

template <class T>
struct atomic {
  T value;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<bool> atomic_bool;
typedef atomic<float> atomic_float;

template <class T>
MNK_HOST_ATOMIC T atomic_load_explicit(const volatile atomic<T>* object, memory_order) {
  MNK_HOST_TELL(atomicLoad);
  T result;
  __atomic_load(&object->value, &result, __ATOMIC_RELAXED);
  return result;
}
template <class T>
MNK_HOST_ATOMIC void atomic_store_explicit(volatile atomic<T>* object, identity_t<T> value, memory_order) {
  MNK_HOST_TELL(atomicStore);
  __atomic_store(&object->value, &value, __ATOMIC_RELAXED);
}
template <class T>
MNK_HOST_ATOMIC T atomic_exchange_explicit(volatile atomic<T>* object, identity_t<T> value, memory_order) {
  MNK_HOST_TELL(atomic);
  T result;
  __atomic_exchange(&object->value, &value, &result, __ATOMIC_RELAXED);
  return result;
}
template <class T>
MNK_HOST_ATOMIC bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* object, T* expected,
                                                           identity_t<T> desired, memory_order, memory_order) {
  MNK_HOST_TELL(atomic);
  return __atomic_compare_exchange(&object->value, expected, &desired, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

#define MNK_HOST_FETCH(name, builtin)                                                                                \
  template <class T>                                                                                                 \
  requires(__is_integral(T)) MNK_HOST_ATOMIC T name(volatile atomic<T>* object, identity_t<T> value, memory_order) { \
    MNK_HOST_TELL(atomic);                                                                                           \
    return builtin(&object->value, value, __ATOMIC_RELAXED);                                                         \
  }
MNK_HOST_FETCH(atomic_fetch_add_explicit, __atomic_fetch_add)
MNK_HOST_FETCH(atomic_fetch_sub_explicit, __atomic_fetch_sub)
MNK_HOST_FETCH(atomic_fetch_max_explicit, __atomic_fetch_max)
MNK_HOST_FETCH(atomic_fetch_min_explicit, __atomic_fetch_min)
MNK_HOST_FETCH(atomic_fetch_and_explicit, __atomic_fetch_and)
MNK_HOST_FETCH(atomic_fetch_or_explicit, __atomic_fetch_or)
MNK_HOST_FETCH(atomic_fetch_xor_explicit, __atomic_fetch_xor)
#undef MNK_HOST_FETCH

// Always sequentially consistent: lanes of a threadgroup share a CPU thread.
MNK_HOST_INLINE void atomic_thread_fence(mem_flags, memory_order, thread_scope) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

MNK_HOST_ATOMIC float atomic_fetch_add_explicit(volatile atomic_float* object, float value, memory_order) {
  MNK_HOST_TELL(atomic);
  float before;
  __atomic_load(&object->value, &before, __ATOMIC_RELAXED);
  float after = before + value;
  while (!__atomic_compare_exchange(&object->value, &before, &after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    after = before + value;
  }
  return before;
}
MNK_HOST_INLINE float atomic_fetch_sub_explicit(volatile atomic_float* object, float value, memory_order order) {
  return atomic_fetch_add_explicit(object, -value, order);
}

}  // namespace metal

#undef MNK_HOST_ATOMIC
#undef MNK_HOST_TELL

namespace mnk::host {

// Provides a kernel's parameters, function constants and threadgroup arrays.
//
// An attribute such as [[buffer(0)]] follows a parameter's name, where a default argument would also be. `buffer(n)`
// therefore expands to   ]] = …::bufferArgument<n>[…::at[…::Always{}   and the attribute's closing brackets complete
// the expression. Every kernel parameter gets a default argument that queries the running lane, and the executor calls
// kernels without arguments. In [[buffer(2), function_constant(c)]] the comma joins Always and Optional.
struct Always {};
struct Optional {
  bool present;
  MNK_HOST_INLINE constexpr explicit Optional(bool present) : present(present) {}
};
MNK_HOST_INLINE constexpr Optional operator,(Always, Optional optional) {
  return optional;
}

struct At {
  template <class T>
  MNK_HOST_INLINE constexpr T operator[](T presence) const {
    return presence;
  }
};
inline constexpr At at;

extern const char absentObject[4096];  // zeros, bound to an absent reference

// Converts to the pointer or reference that the parameter needs.
struct Address {
  void* address;
  template <class T>
  MNK_HOST_INLINE operator T*() const {
    return static_cast<T*>(address);
  }
  template <class T>
  requires(!__is_pointer(T)) MNK_HOST_INLINE operator T&() const {
    static_assert(sizeof(T) <= sizeof absentObject, "too large for a reference");
    return *static_cast<T*>(address ? address : const_cast<char*>(absentObject));
  }
};

template <ArgumentKind Kind, uint32_t N>
struct Argument {
  static_assert(N < (Kind == ArgumentKind::buffer ? kBufferIndices : kThreadgroupIndices),
                "buffer indices are 0 to 30, threadgroup memory indices 0 to 7");
  MNK_HOST_HOOK Address operator[](Always) const {
    void* address;
    if constexpr (Kind == ArgumentKind::buffer) {
      address = running.arguments->buffers[N];
    } else {
      address = running.group->threadgroupMemory[N];
    }
    if (__builtin_expect(!address, 0)) address = unboundArgument(Kind, N);
    return {address};
  }
  MNK_HOST_HOOK Address operator[](Optional optional) const {
    if (optional.present) return (*this)[Always{}];
    if (__builtin_expect(running.arguments->recording, 0)) recordAbsentArgument();
    return {nullptr};
  }
};
template <uint32_t N>
inline constexpr Argument<ArgumentKind::buffer, N> bufferArgument{};
template <uint32_t N>
inline constexpr Argument<ArgumentKind::threadgroupMemory, N> threadgroupArgument{};

// Converts to any type that Metal allows for a built-in value: only unsigned ones.
struct BuiltinValue {
  uint32_t x, y, z;
  MNK_HOST_INLINE operator metal::uint() const { return x; }
  MNK_HOST_INLINE operator metal::ushort() const { return metal::ushort(x); }
  operator int() const = delete;
  operator short() const = delete;
  operator metal::ulong() const = delete;
  MNK_HOST_INLINE operator metal::uint2() const { return metal::uint2(x, y); }
  MNK_HOST_INLINE operator metal::uint3() const { return metal::uint3(x, y, z); }
  MNK_HOST_INLINE operator metal::ushort2() const { return metal::ushort2(x, y); }
  MNK_HOST_INLINE operator metal::ushort3() const { return metal::ushort3(x, y, z); }
};

#define MNK_HOST_BUILTIN(name, x, y, z)                        \
  struct name##Type {                                          \
    MNK_HOST_HOOK BuiltinValue operator[](Always) const {      \
      [[maybe_unused]] const Running& lane = running;          \
      [[maybe_unused]] const Threadgroup& group = *lane.group; \
      return {x, y, z};                                        \
    }                                                          \
  };                                                           \
  inline constexpr name##Type name;
#define MNK_HOST_BUILTIN1(name, value) MNK_HOST_BUILTIN(name, value, 0, 0)
#define MNK_HOST_BUILTIN3(name, values) MNK_HOST_BUILTIN(name, values[0], values[1], values[2])
MNK_HOST_BUILTIN(threadPositionInGrid, group.origin[0] + lane.position[0], group.origin[1] + lane.position[1],
                 group.origin[2] + lane.position[2])
MNK_HOST_BUILTIN3(threadPositionInThreadgroup, lane.position)
MNK_HOST_BUILTIN1(threadIndexInThreadgroup, lane.linear)
MNK_HOST_BUILTIN1(threadIndexInSimdgroup, lane.linear % 32)
MNK_HOST_BUILTIN1(threadIndexInQuadgroup, lane.linear % 4)
MNK_HOST_BUILTIN1(simdgroupIndexInThreadgroup, lane.linear / 32)
MNK_HOST_BUILTIN1(quadgroupIndexInThreadgroup, lane.linear / 4)
MNK_HOST_BUILTIN1(simdgroupsPerThreadgroup, group.count)
MNK_HOST_BUILTIN1(quadgroupsPerThreadgroup, (group.size[0] * group.size[1] * group.size[2] + 3) / 4)
MNK_HOST_BUILTIN1(threadsPerSimdgroup, 32)
MNK_HOST_BUILTIN3(threadgroupPositionInGrid, group.position)
MNK_HOST_BUILTIN3(threadsPerThreadgroup, group.size)
MNK_HOST_BUILTIN3(dispatchThreadsPerThreadgroup, group.launch->threadgroup)
MNK_HOST_BUILTIN1(dispatchSimdgroupsPerThreadgroup,
                  (group.launch->threadgroup[0] * group.launch->threadgroup[1] * group.launch->threadgroup[2] + 31) /
                      32)
MNK_HOST_BUILTIN3(threadgroupsPerGrid, group.launch->groups)
MNK_HOST_BUILTIN3(threadsPerGrid, group.launch->threads)
#undef MNK_HOST_BUILTIN
#undef MNK_HOST_BUILTIN1
#undef MNK_HOST_BUILTIN3

// Read from the running pipeline, so that pipelines with different values can run concurrently.
template <class T, uint32_t N>
struct PipelineConstant {
  static_assert(N < kConstantIndices, "function constant indices are 0 to 127 here");
  const char* name;
  const char* file;
  uint32_t line;
  MNK_HOST_HOOK operator T() const {
    const Arguments* arguments = running.arguments;
    if (__builtin_expect(!arguments->constantIsSet[N], 0)) unsetConstant(name, N, file, line);
    T value;
    __builtin_memcpy(&value, &arguments->constants[N], sizeof value);
    return value;
  }
};
template <class T, uint32_t N>
MNK_HOST_HOOK bool isConstantSet(const PipelineConstant<T, N>&) {
  return running.arguments->constantIsSet[N];
}

// One array per threadgroup and declaration; the lambda's type names the declaration.
template <class Declaration>
inline constexpr char kDeclarationKey = 0;
template <class T, size_t Count, class Declaration>
MNK_HOST_HOOK auto threadgroupArray(Declaration, Site site = Site::here()) -> T (&)[Count] {
  const Threadgroup& group = *running.group;
  const void* key = &kDeclarationKey<Declaration>;
  for (uint32_t i = 0; i < group.arrayCount; ++i) {
    if (group.arrays[i].declaration == key) return *static_cast<T(*)[Count]>(group.arrays[i].address);
  }
  return *static_cast<T(*)[Count]>(allocateThreadgroupArray(key, sizeof(T) * Count, site));
}

}  // namespace mnk::host

// The keywords of Metal Shading Language and MetalCompat.h, as macros, and rules of the Metal compiler that C++20
// lacks. Everything after this header is kernel source.
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
      MNK_HOST_LIBRARY, #name, __FILE__, __LINE__, index, ::mnk::host::valueTypeOf<type>()))             \
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
