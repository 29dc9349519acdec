// Math functions of floating-point scalars and vectors. half and bfloat compute in float and round once. precise:: uses
// the C library; default and fast:: use inline approximations of exp and exp2, accurate to about 1 ulp. With
// MNK_HOST_PERTURBED, all are as inaccurate as Metal allows (PerturbedMath.h).
#pragma once
#include "MetalStdlib/PackedVectors.h"
#if MNK_HOST_PERTURBED
#include "MetalStdlib/PerturbedMath.h"
#endif

#ifndef INFINITY
#define INFINITY __builtin_inff()
#endif
#ifndef NAN
#define NAN __builtin_nanf("")
#endif
#ifndef HUGE_VALF
#define HUGE_VALF __builtin_huge_valf()
#endif
#ifndef MAXFLOAT
#define MAXFLOAT 3.402823466e+38f
#endif
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define HALF_MAX 65504.0h
#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.43429448190325182765f
#define M_LN2_F 0.69314718055994530942f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.78539816339744830962f
#define M_1_PI_F 0.31830988618379067154f
#define M_2_PI_F 0.63661977236758134308f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.70710678118654752440f

namespace metal {

namespace approximate {

// 2^x as an integer power times 2 to a fraction in [-0.5, 0.5], approximated by a polynomial of degree 6.
MNK_HOST_INLINE float exp2(float x) {
  const float clamped = __builtin_fminf(__builtin_fmaxf(x, -150.0f), 128.0f);
  const float whole = __builtin_roundevenf(clamped);
  const float f = clamped - whole;
  float p = 1.535336188319500e-4f;
  p = p * f + 1.339887440266574e-3f;
  p = p * f + 9.618437357674640e-3f;
  p = p * f + 5.550332471162809e-2f;
  p = p * f + 2.402264791363012e-1f;
  p = p * f + 6.931472028550421e-1f;
  p = p * f + 1.0f;
  // Two factors reach subnormal numbers and infinity.
  const int power = x != x ? 0 : (int)whole;
  const int low = power >> 1, high = power - low;
  const float y = p * __builtin_bit_cast(float, (low + 127) << 23) * __builtin_bit_cast(float, (high + 127) << 23);
  return x != x ? x : y;
}

MNK_HOST_INLINE float exp(float x) {
  return approximate::exp2(x * M_LOG2E_F);
}

}  // namespace approximate

// Functions that the C library lacks.
namespace extra {

MNK_HOST_INLINE float rsqrt(float x) {
  return 1.0f / __builtin_sqrtf(x);
}
MNK_HOST_INLINE float exp10(float x) {
  return __builtin_powf(10.0f, x);
}
MNK_HOST_INLINE float cospi(float x) {
  return __builtin_cosf(__builtin_fmodf(x, 2.0f) * M_PI_F);
}
MNK_HOST_INLINE float sinpi(float x) {
  return __builtin_sinf(__builtin_fmodf(x, 2.0f) * M_PI_F);
}
MNK_HOST_INLINE float tanpi(float x) {
  return __builtin_tanf(__builtin_fmodf(x, 1.0f) * M_PI_F);
}
// Less than one even for tiny negative numbers, whose fraction would round to one.
MNK_HOST_INLINE float fract(float x) {
  return __builtin_fminf(x - __builtin_floorf(x), 0x1.fffffep-1f);
}
MNK_HOST_INLINE float sign(float x) {
  return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x != x ? 0.0f : x;
}
MNK_HOST_INLINE float saturate(float x) {
  return __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f);
}

}  // namespace extra

#define MNK_HOST_VECTOR1(name)                                      \
  template <Vector A>                                               \
  MNK_HOST_INLINE vector_of<A> name(const A& a) {                   \
    const vector_of<A> in = a;                                      \
    vector_of<A> out;                                               \
    for (int i = 0; i < Shape<A>::count; ++i) out[i] = name(in[i]); \
    return out;                                                     \
  }
#define MNK_HOST_VECTOR2(name)                                           \
  template <class A, class B, class V = typename Joined<A, B>::type>     \
  MNK_HOST_INLINE V name(const A& a, const B& b) {                       \
    const V x = a, y = b;                                                \
    V out;                                                               \
    for (int i = 0; i < Shape<V>::count; ++i) out[i] = name(x[i], y[i]); \
    return out;                                                          \
  }
#define MNK_HOST_VECTOR3(name)                                                                            \
  template <Vector A>                                                                                     \
  MNK_HOST_INLINE vector_of<A> name(const A& a, identity_t<vector_of<A>> b, identity_t<vector_of<A>> c) { \
    const vector_of<A> in = a;                                                                            \
    vector_of<A> out;                                                                                     \
    for (int i = 0; i < Shape<A>::count; ++i) out[i] = name(in[i], b[i], c[i]);                           \
    return out;                                                                                           \
  }
#define MNK_HOST_EXACT1(name, call)     \
  MNK_HOST_INLINE float name(float x) { \
    return call(x);                     \
  }                                     \
  template <SmallFloat S>               \
  MNK_HOST_INLINE S name(S x) {         \
    return S(call((float)x));           \
  }                                     \
  MNK_HOST_VECTOR1(name)
#define MNK_HOST_EXACT2(name, call)              \
  MNK_HOST_INLINE float name(float x, float y) { \
    return call(x, y);                           \
  }                                              \
  template <SmallFloat S>                        \
  MNK_HOST_INLINE S name(S x, S y) {             \
    return S(call((float)x, (float)y));          \
  }                                              \
  MNK_HOST_VECTOR2(name)

// Functions whose results may be inexact on a GPU. PerturbableMath is specific to each namespace.
#if MNK_HOST_PERTURBED
#define MNK_HOST_MATH1(name, call)                                     \
  MNK_HOST_INLINE float name(float x) {                                \
    return PerturbableMath::name(x);                                   \
  }                                                                    \
  template <SmallFloat S>                                              \
  MNK_HOST_INLINE S name(S x) {                                        \
    if constexpr (is_same_v<S, half>) return perturbed::Half::name(x); \
    return S(PerturbableMath::name((float)x));                         \
  }                                                                    \
  MNK_HOST_VECTOR1(name)
#define MNK_HOST_MATH2(name, call)                                        \
  MNK_HOST_INLINE float name(float x, float y) {                          \
    return PerturbableMath::name(x, y);                                   \
  }                                                                       \
  template <SmallFloat S>                                                 \
  MNK_HOST_INLINE S name(S x, S y) {                                      \
    if constexpr (is_same_v<S, half>) return perturbed::Half::name(x, y); \
    return S(PerturbableMath::name((float)x, (float)y));                  \
  }                                                                       \
  MNK_HOST_VECTOR2(name)
#define MNK_HOST_QUOTIENT(x, y) perturbed::quotient<PerturbableMath>(x, y)
#else
#define MNK_HOST_MATH1 MNK_HOST_EXACT1
#define MNK_HOST_MATH2 MNK_HOST_EXACT2
#define MNK_HOST_QUOTIENT(x, y) x / y
#endif

#define MNK_HOST_LIBRARY_FUNCTIONS               \
  MNK_HOST_MATH1(acos, __builtin_acosf)          \
  MNK_HOST_MATH1(acosh, __builtin_acoshf)        \
  MNK_HOST_MATH1(asin, __builtin_asinf)          \
  MNK_HOST_MATH1(asinh, __builtin_asinhf)        \
  MNK_HOST_MATH1(atan, __builtin_atanf)          \
  MNK_HOST_MATH1(atanh, __builtin_atanhf)        \
  MNK_HOST_EXACT1(ceil, __builtin_ceilf)         \
  MNK_HOST_MATH1(cos, __builtin_cosf)            \
  MNK_HOST_MATH1(cosh, __builtin_coshf)          \
  MNK_HOST_MATH1(cospi, extra::cospi)            \
  MNK_HOST_MATH1(exp10, extra::exp10)            \
  MNK_HOST_EXACT1(fabs, __builtin_fabsf)         \
  MNK_HOST_EXACT1(floor, __builtin_floorf)       \
  MNK_HOST_EXACT1(fract, extra::fract)           \
  MNK_HOST_MATH1(log, __builtin_logf)            \
  MNK_HOST_MATH1(log2, __builtin_log2f)          \
  MNK_HOST_MATH1(log10, __builtin_log10f)        \
  MNK_HOST_EXACT1(rint, __builtin_roundevenf)    \
  MNK_HOST_EXACT1(round, __builtin_roundf)       \
  MNK_HOST_MATH1(rsqrt, extra::rsqrt)            \
  MNK_HOST_MATH1(sin, __builtin_sinf)            \
  MNK_HOST_MATH1(sinh, __builtin_sinhf)          \
  MNK_HOST_MATH1(sinpi, extra::sinpi)            \
  MNK_HOST_MATH1(sqrt, __builtin_sqrtf)          \
  MNK_HOST_MATH1(tan, __builtin_tanf)            \
  MNK_HOST_MATH1(tanh, __builtin_tanhf)          \
  MNK_HOST_MATH1(tanpi, extra::tanpi)            \
  MNK_HOST_EXACT1(trunc, __builtin_truncf)       \
  MNK_HOST_MATH2(atan2, __builtin_atan2f)        \
  MNK_HOST_EXACT2(copysign, __builtin_copysignf) \
  MNK_HOST_EXACT2(fdim, __builtin_fdimf)         \
  MNK_HOST_EXACT2(fmax, __builtin_fmaxf)         \
  MNK_HOST_EXACT2(fmin, __builtin_fminf)         \
  MNK_HOST_EXACT2(fmod, __builtin_fmodf)         \
  MNK_HOST_MATH2(pow, __builtin_powf)            \
  MNK_HOST_MATH2(powr, __builtin_powf)           \
  template <class T>                             \
  MNK_HOST_INLINE T sincos(T x, T& cosine) {     \
    cosine = cos(x);                             \
    return sin(x);                               \
  }                                              \
  template <class T>                             \
  MNK_HOST_INLINE T divide(T x, T y) {           \
    return MNK_HOST_QUOTIENT(x, y);              \
  }
#define MNK_HOST_FAST_FUNCTIONS           \
  MNK_HOST_MATH1(exp, approximate::exp)   \
  MNK_HOST_MATH1(exp2, approximate::exp2) \
  MNK_HOST_LIBRARY_FUNCTIONS

#if MNK_HOST_PERTURBED
using PerturbableMath = perturbed::Fast;
namespace precise {
using PerturbableMath = perturbed::Precise;
}
#endif
MNK_HOST_FAST_FUNCTIONS
namespace fast {
MNK_HOST_FAST_FUNCTIONS
}
namespace precise {
MNK_HOST_MATH1(exp, __builtin_expf)
MNK_HOST_MATH1(exp2, __builtin_exp2f)
MNK_HOST_LIBRARY_FUNCTIONS
}  // namespace precise
MNK_HOST_EXACT1(sign, extra::sign)
MNK_HOST_EXACT1(saturate, extra::saturate)
MNK_HOST_EXACT2(nextafter, __builtin_nextafterf)
#undef MNK_HOST_FAST_FUNCTIONS
#undef MNK_HOST_LIBRARY_FUNCTIONS
#undef MNK_HOST_MATH1
#undef MNK_HOST_MATH2
#undef MNK_HOST_EXACT1
#undef MNK_HOST_EXACT2
#undef MNK_HOST_QUOTIENT

// Fused even with reassociation, which would split it on processors without the instruction.
MNK_HOST_INLINE float fma(float a, float b, float c) {
#pragma clang fp reassociate(off)
  return __builtin_fmaf(a, b, c);
}
// Rounds once: a double holds the product of halves, and as much of the sum as matters. If a float does not, its last
// bit becomes odd, so that it never lies in the middle of two halves.
template <SmallFloat S>
MNK_HOST_INLINE S fma(S a, S b, S c) {
#pragma clang fp reassociate(off)
  const double sum = (double)(float)a * (float)b + (float)c;
  const float nearest = (float)sum;
  const double missing = __builtin_fabs(sum) - __builtin_fabs((double)nearest);
  const uint32_t bits = __builtin_bit_cast(uint32_t, nearest);
  if ((bits & 1) != 0 || !(missing < 0 || missing > 0)) return S(nearest);
  return S(__builtin_bit_cast(float, missing > 0 ? bits + 1 : bits - 1));
}
template <Vector A>
MNK_HOST_INLINE vector_of<A> fma(const A& a, identity_t<vector_of<A>> b, identity_t<vector_of<A>> c) {
#pragma clang fp reassociate(off)
  const vector_of<A> in = a;
  if constexpr (is_same_v<element_of<A>, float>) {
    return vector_of<A>::from(__builtin_elementwise_fma(in.v, b.v, c.v));
  } else {
    vector_of<A> out;
    for (int i = 0; i < Shape<A>::count; ++i) out[i] = fma(in[i], b[i], c[i]);
    return out;
  }
}

MNK_HOST_INLINE float ldexp(float x, int power) {
  return __builtin_ldexpf(x, power);
}
MNK_HOST_INLINE float frexp(float x, int& power) {
  return __builtin_frexpf(x, &power);
}
MNK_HOST_INLINE int ilogb(float x) {
  return __builtin_ilogbf(x);
}
MNK_HOST_INLINE float modf(float x, float& whole) {
  whole = __builtin_truncf(x);
  return __builtin_copysignf(__builtin_isinf(x) ? 0.0f : x - whole, x);
}

#define MNK_HOST_CLASSIFY(name, expression)                         \
  MNK_HOST_INLINE bool name(float x) {                              \
    return expression;                                              \
  }                                                                 \
  template <Vector A>                                               \
  MNK_HOST_INLINE vec<bool, Shape<A>::count> name(const A& a) {     \
    const vector_of<A> in = a;                                      \
    vec<bool, Shape<A>::count> out;                                 \
    for (int i = 0; i < Shape<A>::count; ++i) out[i] = name(in[i]); \
    return out;                                                     \
  }
MNK_HOST_CLASSIFY(isnan, x != x)
MNK_HOST_CLASSIFY(isinf, __builtin_fabsf(x) == INFINITY)
MNK_HOST_CLASSIFY(isfinite, __builtin_fabsf(x) < INFINITY)
MNK_HOST_CLASSIFY(isnormal, __builtin_isnormal(x))
MNK_HOST_CLASSIFY(signbit, __builtin_bit_cast(uint32_t, x) >> 31)
#undef MNK_HOST_CLASSIFY

}  // namespace metal
