// half and bfloat. Every operation rounds to nearest even.
#pragma once
#include "Traits.h"

namespace metal {

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
