// Type helpers for Metal kernels and for MetalStdlib. Kernel source is in namespace metal, so that it cannot use names
// of the C library by accident.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "Executor/Fiber.h"

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

// half and bfloat. Every operation rounds to nearest even.
struct half {
  _Float16 bits;
  half() = default;
  MNK_HOST_INLINE constexpr half(float x) : bits((_Float16)x) {}
  template <Integer I>
  MNK_HOST_INLINE constexpr half(I x) : bits((_Float16)(float)x) {}
  template <Double D>
  half(D) = delete;  // Metal has no double: write 1.0f or 1.0h
  explicit half(bfloat) = delete;
  MNK_HOST_INLINE constexpr operator float() const { return (float)bits; }
};

struct bfloat {
  uint16_t bits;
  bfloat() = default;
  MNK_HOST_INLINE constexpr bfloat(float x) : bits(roundedBits(x)) {}
  template <Integer I>
  MNK_HOST_INLINE constexpr bfloat(I x) : bfloat((float)x) {}
  template <Double D>
  bfloat(D) = delete;
  explicit bfloat(half) = delete;
  MNK_HOST_INLINE constexpr operator float() const { return __builtin_bit_cast(float, uint32_t(bits) << 16); }

  // NaN stays NaN: setting its highest mantissa bit prevents truncation from making it infinite.
  static MNK_HOST_INLINE constexpr uint16_t roundedBits(float x) {
    const uint32_t u = __builtin_bit_cast(uint32_t, x);
    return x != x ? uint16_t(u >> 16 | 0x40) : uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
  }
};

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wuser-defined-literals"
MNK_HOST_INLINE constexpr half operator""h(long double x) {
  return half((float)x);
}
#pragma clang diagnostic pop

// half op half and half op integer are half; half op float is float.
template <class A, class B>
struct Mixed {};
template <SmallFloat A>
struct Mixed<A, A> {
  using type = A;
};
template <SmallFloat A, BuiltinScalar B>
struct Mixed<A, B> {
  using type = conditional_t<is_same_v<B, float>, float, A>;
};
template <BuiltinScalar A, SmallFloat B>
struct Mixed<A, B> {
  using type = conditional_t<is_same_v<A, float>, float, B>;
};

#define MNK_HOST_OPERATOR(op)                                                  \
  template <class A, class B>                                                  \
  MNK_HOST_INLINE constexpr typename Mixed<A, B>::type operator op(A a, B b) { \
    using R = typename Mixed<A, B>::type;                                      \
    return R((float)R(a) op(float) R(b));                                      \
  }                                                                            \
  template <SmallFloat A, Scalar B>                                            \
  MNK_HOST_INLINE constexpr A& operator op##=(A& a, B b) {                     \
    return a = A(a op b);                                                      \
  }                                                                            \
  template <SmallFloat B>                                                      \
  MNK_HOST_INLINE constexpr float& operator op##=(float& a, B b) {             \
    return a = a op(float) b;                                                  \
  }
MNK_HOST_OPERATOR(+)
MNK_HOST_OPERATOR(-)
MNK_HOST_OPERATOR(*)
MNK_HOST_OPERATOR(/)
#undef MNK_HOST_OPERATOR

#define MNK_HOST_OPERATOR(op)                                     \
  template <class A, class B, class = typename Mixed<A, B>::type> \
  MNK_HOST_INLINE constexpr bool operator op(A a, B b) {          \
    return (float)a op(float) b;                                  \
  }
MNK_HOST_OPERATOR(<)
MNK_HOST_OPERATOR(>)
MNK_HOST_OPERATOR(<=)
MNK_HOST_OPERATOR(>=)
MNK_HOST_OPERATOR(==)
MNK_HOST_OPERATOR(!=)
#undef MNK_HOST_OPERATOR

template <SmallFloat A>
MNK_HOST_INLINE constexpr A operator-(A a) {
  return A(-(float)a);
}
template <SmallFloat A>
MNK_HOST_INLINE constexpr A operator+(A a) {
  return a;
}

}  // namespace metal

// The swizzle members of vectors: MNK_HOST_SWIZZLES_2, _3 and _4 list those of a vector with that many components. All
// swizzles of two and three components, and common ones of four.
#define MNK_HOST_INDEX_x 0
#define MNK_HOST_INDEX_y 1
#define MNK_HOST_INDEX_z 2
#define MNK_HOST_INDEX_w 3

#define MNK_HOST_SWIZZLE2(a, b) Swizzle<T, MNK_HOST_INDEX_##a, MNK_HOST_INDEX_##b> a##b;
#define MNK_HOST_SWIZZLE3(a, b, c) Swizzle<T, MNK_HOST_INDEX_##a, MNK_HOST_INDEX_##b, MNK_HOST_INDEX_##c> a##b##c;
#define MNK_HOST_SWIZZLE4(a, b, c, d) \
  Swizzle<T, MNK_HOST_INDEX_##a, MNK_HOST_INDEX_##b, MNK_HOST_INDEX_##c, MNK_HOST_INDEX_##d> a##b##c##d;

// Every last component after the given ones.
#define MNK_HOST_LAST2_2(a) MNK_HOST_SWIZZLE2(a, x) MNK_HOST_SWIZZLE2(a, y)
#define MNK_HOST_LAST2_3(a) MNK_HOST_LAST2_2(a) MNK_HOST_SWIZZLE2(a, z)
#define MNK_HOST_LAST2_4(a) MNK_HOST_LAST2_3(a) MNK_HOST_SWIZZLE2(a, w)
#define MNK_HOST_LAST3_2(a, b) MNK_HOST_SWIZZLE3(a, b, x) MNK_HOST_SWIZZLE3(a, b, y)
#define MNK_HOST_LAST3_3(a, b) MNK_HOST_LAST3_2(a, b) MNK_HOST_SWIZZLE3(a, b, z)
#define MNK_HOST_LAST3_4(a, b) MNK_HOST_LAST3_3(a, b) MNK_HOST_SWIZZLE3(a, b, w)

// Every swizzle that starts with the given component.
#define MNK_HOST_FIRST_2(a) MNK_HOST_LAST2_2(a) MNK_HOST_LAST3_2(a, x) MNK_HOST_LAST3_2(a, y)
#define MNK_HOST_FIRST_3(a) MNK_HOST_LAST2_3(a) MNK_HOST_LAST3_3(a, x) MNK_HOST_LAST3_3(a, y) MNK_HOST_LAST3_3(a, z)
#define MNK_HOST_FIRST_4(a) \
  MNK_HOST_LAST2_4(a)       \
  MNK_HOST_LAST3_4(a, x) MNK_HOST_LAST3_4(a, y) MNK_HOST_LAST3_4(a, z) MNK_HOST_LAST3_4(a, w)

// clang-format would misalign these lists.
// clang-format off
#define MNK_HOST_FOURS_2                                                                    \
  MNK_HOST_SWIZZLE4(x, x, x, x) MNK_HOST_SWIZZLE4(y, y, y, y) MNK_HOST_SWIZZLE4(x, y, x, y) \
  MNK_HOST_SWIZZLE4(x, x, y, y) MNK_HOST_SWIZZLE4(y, x, y, x)
#define MNK_HOST_FOURS_4                                                                    \
  MNK_HOST_SWIZZLE4(z, z, z, z) MNK_HOST_SWIZZLE4(w, w, w, w) MNK_HOST_SWIZZLE4(x, y, z, w) \
  MNK_HOST_SWIZZLE4(w, z, y, x) MNK_HOST_SWIZZLE4(y, z, w, x) MNK_HOST_SWIZZLE4(z, w, x, y) \
  MNK_HOST_SWIZZLE4(w, x, y, z) MNK_HOST_SWIZZLE4(y, x, w, z) MNK_HOST_SWIZZLE4(x, z, y, w) \
  MNK_HOST_SWIZZLE4(z, w, z, w) MNK_HOST_SWIZZLE4(z, z, w, w) MNK_HOST_SWIZZLE4(x, x, z, z) \
  MNK_HOST_SWIZZLE4(y, y, w, w) MNK_HOST_SWIZZLE4(x, z, x, z) MNK_HOST_SWIZZLE4(y, w, y, w)
// clang-format on

#define MNK_HOST_SWIZZLES_2 MNK_HOST_FIRST_2(x) MNK_HOST_FIRST_2(y) MNK_HOST_FOURS_2
#define MNK_HOST_SWIZZLES_3 MNK_HOST_FIRST_3(x) MNK_HOST_FIRST_3(y) MNK_HOST_FIRST_3(z) MNK_HOST_FOURS_2
#define MNK_HOST_SWIZZLES_4 \
  MNK_HOST_FIRST_4(x) MNK_HOST_FIRST_4(y) MNK_HOST_FIRST_4(z) MNK_HOST_FIRST_4(w) MNK_HOST_FOURS_2 MNK_HOST_FOURS_4
