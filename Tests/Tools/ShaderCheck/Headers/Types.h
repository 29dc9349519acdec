// Scalar types, constants and enumerations of Metal Shading Language for the strict compile.
#pragma once
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#define device __attribute__((opencl_global_device))
#define threadgroup __local
#define thread __private

// OpenCL keywords that are ordinary names in Metal.
#define global global_
#define local local_
#define generic generic_
#define pipe pipe_
#define read_only read_only_
#define write_only write_only_
#define read_write read_write_
#define vec_step vec_step_

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef __bf16 bfloat;

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define HALF_MAX 65504.0h
#define M_PI_F 3.14159265358979323846f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LN2_F 0.69314718055994530942f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.70710678118654752440f
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u

namespace metal {

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4 };
constexpr mem_flags operator|(mem_flags a, mem_flags b) {
  return static_cast<mem_flags>(static_cast<int>(a) | static_cast<int>(b));
}

enum memory_order { memory_order_relaxed, memory_order_seq_cst };
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };

template <typename T>
struct atomic {
  T value;
};
// OpenCL has types of these names.
#define atomic_uint ::metal::atomic<uint>
#define atomic_int ::metal::atomic<int>
#define atomic_float ::metal::atomic<float>

// Which scalars convert implicitly to which elements: never a wider floating-point type, and no floating-point type to
// integer elements.
template <typename T>
struct FloatingRank {
  enum { value = 0 };
};
template <>
struct FloatingRank<bfloat> {
  enum { value = 1 };
};
template <>
struct FloatingRank<half> {
  enum { value = 1 };
};
template <>
struct FloatingRank<float> {
  enum { value = 2 };
};

template <typename A, typename B>
struct AreSame {
  enum : bool { value = false };
};
template <typename A>
struct AreSame<A, A> {
  enum : bool { value = true };
};

template <typename T>
struct IsScalar {
  enum : bool { value = __is_arithmetic(T) || AreSame<T, bfloat>::value || AreSame<T, half>::value };
};

template <typename From, typename To>
struct WidensTo {
  enum : bool {
    value = AreSame<From, To>::value ||
            (IsScalar<From>::value && FloatingRank<From>::value < FloatingRank<To>::value) ||
            (IsScalar<From>::value && FloatingRank<From>::value == 0 && FloatingRank<To>::value == 0)
  };
};

template <bool condition>
struct Require {};
template <>
struct Require<true> {
  typedef int Type;
};

}  // namespace metal
