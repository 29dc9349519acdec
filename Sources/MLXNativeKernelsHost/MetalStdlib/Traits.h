// Type helpers for Metal kernels and for MetalStdlib. Kernel source is in namespace metal, so that it cannot use names
// of the C library by accident.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "Executor/Sanitizers.h"

namespace metal {

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

template <bool Condition, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  using type = T;
};
template <bool Condition, class T = void>
using enable_if_t = typename enable_if<Condition, T>::type;

template <bool Condition, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool Condition, class A, class B>
using conditional_t = typename conditional<Condition, A, B>::type;

template <class A, class B>
struct is_same {
  static constexpr bool value = __is_same(A, B);
};
template <class A, class B>
constexpr bool is_same_v = __is_same(A, B);

// A parameter that is excluded from template deduction.
template <class T>
struct Identity {
  using type = T;
};
template <class T>
using identity_t = typename Identity<T>::type;

template <class T>
using plain_t = __remove_cv(__remove_reference_t(T));

struct half;
struct bfloat;
template <class T>
concept SmallFloat = is_same_v<T, half> || is_same_v<T, bfloat>;
template <class T>
concept Double = is_same_v<T, double> || is_same_v<T, long double>;
template <class T>
concept BuiltinScalar = __is_arithmetic(T) && !Double<T>;
template <class T>
concept Scalar = BuiltinScalar<T> || SmallFloat<T>;
template <class T>
concept Integer = BuiltinScalar<T> && __is_integral(T);
template <class T>
concept FloatScalar = is_same_v<T, float> || SmallFloat<T>;

template <class T>
constexpr bool is_integral_v = __is_integral(T);
template <class T>
constexpr bool is_floating_point_v = FloatScalar<T>;
template <class T>
struct is_integral {
  static constexpr bool value = is_integral_v<T>;
};
template <class T>
struct is_floating_point {
  static constexpr bool value = is_floating_point_v<T>;
};

template <class T>
using make_unsigned_t =
    conditional_t<sizeof(T) == 1, uchar,
                  conditional_t<sizeof(T) == 2, ushort, conditional_t<sizeof(T) == 4, uint, ulong>>>;

template <class T, class U>
MNK_HOST_INLINE T as_type(const U& value) {
  static_assert(sizeof(T) == sizeof(U), "as_type needs types of one size");
  T result;
  __builtin_memcpy(static_cast<void*>(&result), static_cast<const void*>(&value), sizeof result);
  return result;
}

}  // namespace metal
