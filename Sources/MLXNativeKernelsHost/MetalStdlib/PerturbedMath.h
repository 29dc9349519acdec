// Math functions with random errors as large as Metal allows (Accuracy.h), for modules compiled with
// MNK_HOST_PERTURBED: they show that kernels work with a GPU's accuracy.
//
// Results are computed in double and perturbed, half of the time by the maximum. NaN, infinity and zero are unchanged,
// as are results that the specification leaves open. A subnormal result may become zero. If the specification gives a
// formula, it is followed exactly, including overflow: fast::tanh(50.0f) is NaN.
#pragma once
#include "Executor/Worker.h"
#include "MetalStdlib/Accuracy.h"
#include "MetalStdlib/PackedVectors.h"

// These modules are compiled with reassociation and reciprocals, which would break exact computations here.
#pragma float_control(precise, on, push)

namespace metal::perturbed {

using mnk::host::accuracyOf;
using mnk::host::Bound;

template <class T>
constexpr mnk::host::FloatFormat formatOf = mnk::host::kSingle;
template <>
inline constexpr mnk::host::FloatFormat formatOf<half> = mnk::host::kHalf;
template <>
inline constexpr mnk::host::FloatFormat formatOf<bfloat> = mnk::host::kBrain;

// A fraction of the allowed error, from -1 to 1. The lowest two bits select extremes.
MNK_HOST_RUNTIME inline double share(uint32_t drawn) {
  if (drawn & 1) return drawn & 2 ? 1.0 : -1.0;
  return double(int32_t(drawn & ~3u)) * 0x1p-31;
}

// The adjacent number in the direction of a different value.
template <class T>
MNK_HOST_RUNTIME inline T steppedTo(double value, T from) {
  using Bits = conditional_t<sizeof(T) == 4, uint32_t, uint16_t>;
  const float number = from;
  const bool shrinks = (number > value) == (number > 0.0f);
  const Bits bits = as_type<Bits>(from);
  return number == 0.0f ? from : as_type<T>(shrinks ? Bits(bits - 1) : Bits(bits + 1));
}

// The exact value as a T, perturbed within the bound for the operand.
template <class T>
MNK_HOST_RUNTIME inline __attribute__((noinline)) T moved(double exact, const Bound& bound, double operand) {
  const T rounded = T(float(exact));
  const float size = __builtin_fabsf(rounded);
  if (!(size > 0.0f && size < __builtin_inff())) return rounded;
  const double allowed = mnk::host::allowedError(bound, operand, exact, formatOf<T>);
  if (allowed <= 0.5 * mnk::host::ulpAt(exact, formatOf<T>)) return rounded;
  const uint32_t drawn = mnk::host::drawPerturbation();
  T result = T(float(exact + share(drawn) * allowed));
  if (__builtin_fabs(double(float(result)) - exact) > allowed) result = steppedTo(exact, result);
  const bool isSubnormal = __builtin_fabsf(result) < __builtin_ldexpf(1.0f, formatOf<T>.leastExponent);
  return isSubnormal && (drawn & 4) ? T(__builtin_copysignf(0.0f, result)) : result;
}

// Functions that the C library lacks or computes less accurately. Quarter turns are subtracted exactly.
namespace exact {

inline double sinpi(double x) {
  const double quarters = __builtin_roundeven(2 * x);
  const double angle = (x - quarters / 2) * mnk::host::kPi;
  const int turn = int(__builtin_fmod(quarters, 4));
  const double value = turn % 2 ? __builtin_cos(angle) : __builtin_sin(angle);
  return turn == 2 || turn == 3 || turn == -1 || turn == -2 ? -value : value;
}
inline double cospi(double x) {
  return sinpi(x + 0.5);
}
inline double tanpi(double x) {
  return sinpi(x) / cospi(x);
}
inline double rsqrt(double x) {
  return 1 / __builtin_sqrt(x);
}
inline double exp10(double x) {
  return __builtin_pow(10, x);
}
inline double powr(double x, double y) {
  return __builtin_pow(x, y);
}

}  // namespace exact

#define MNK_HOST_LIBRARY_ROWS(one, two)                                                                                \
  one(acos, __builtin_acos) one(acosh, __builtin_acosh) one(asin, __builtin_asin) one(asinh, __builtin_asinh)          \
      one(atan, __builtin_atan) one(atanh, __builtin_atanh) one(cos, __builtin_cos) one(cosh, __builtin_cosh)          \
          one(cospi, exact::cospi) one(exp, __builtin_exp) one(exp10, exact::exp10) one(exp2, __builtin_exp2)          \
              one(log, __builtin_log) one(log10, __builtin_log10) one(log2, __builtin_log2) one(rsqrt, exact::rsqrt)   \
                  one(sin, __builtin_sin) one(sinh, __builtin_sinh) one(sinpi, exact::sinpi) one(sqrt, __builtin_sqrt) \
                      one(tan, __builtin_tan) one(tanh, __builtin_tanh) one(tanpi, exact::tanpi)                       \
                          two(atan2, __builtin_atan2) two(pow, __builtin_pow) two(powr, exact::powr)

struct Precise {
#define MNK_HOST_ROW1(name, call)                               \
  static float name(float x) {                                  \
    return moved<float>(call(x), accuracyOf(#name).precise, x); \
  }
#define MNK_HOST_ROW2(name, call)                                  \
  static float name(float x, float y) {                            \
    return moved<float>(call(x, y), accuracyOf(#name).precise, x); \
  }
  MNK_HOST_LIBRARY_ROWS(MNK_HOST_ROW1, MNK_HOST_ROW2)
#undef MNK_HOST_ROW1
#undef MNK_HOST_ROW2
  static float divide(float x, float y) {
    return x / y;
  }
  static bfloat divide(bfloat x, bfloat y) {
    return x / y;
  }
};

struct Half {
#define MNK_HOST_ROW1(name, call)                                  \
  static half name(half x) {                                       \
    return moved<half>(call(float(x)), accuracyOf(#name).half, x); \
  }
#define MNK_HOST_ROW2(name, call)                                            \
  static half name(half x, half y) {                                         \
    return moved<half>(call(float(x), float(y)), accuracyOf(#name).half, x); \
  }
  MNK_HOST_LIBRARY_ROWS(MNK_HOST_ROW1, MNK_HOST_ROW2)
#undef MNK_HOST_ROW1
#undef MNK_HOST_ROW2
};
#undef MNK_HOST_LIBRARY_ROWS

struct Fast {
#define MNK_HOST_ROW(name, call)                             \
  static float name(float x) {                               \
    return moved<float>(call(x), accuracyOf(#name).fast, x); \
  }
  MNK_HOST_ROW(acos, __builtin_acos)
  MNK_HOST_ROW(asin, __builtin_asin)
  MNK_HOST_ROW(atan, __builtin_atan)
  MNK_HOST_ROW(cos, __builtin_cos)
  MNK_HOST_ROW(cospi, exact::cospi)
  MNK_HOST_ROW(exp, __builtin_exp)
  MNK_HOST_ROW(exp2, __builtin_exp2)
  MNK_HOST_ROW(log, __builtin_log)
  MNK_HOST_ROW(log2, __builtin_log2)
  MNK_HOST_ROW(reciprocal, 1.0 /)
  MNK_HOST_ROW(rsqrt, exact::rsqrt)
  MNK_HOST_ROW(sin, __builtin_sin)
  MNK_HOST_ROW(sinpi, exact::sinpi)
#undef MNK_HOST_ROW
  static float divide(float x, float y) {
    return moved<float>(double(x) / y, accuracyOf("divide").fast, y);
  }
  static bfloat divide(bfloat x, bfloat y) {
    return moved<bfloat>(double(float(x)) / float(y), mnk::host::kBrainDivide, y);
  }

  static float acosh(float x) {
    return log(x + sqrt(x * x - 1.0f));
  }
  static float asinh(float x) {
    return x == 0.0f ? x : log(x + sqrt(x * x + 1.0f));
  }
  static float atanh(float x) {
    return x == 0.0f ? x : 0.5f * log(divide(1.0f + x, 1.0f - x));
  }
  static float atan2(float y, float x) {
    if (x == 0.0f || y == 0.0f) return __builtin_atan2f(y, x);
    const float turned = x > 0.0f ? 0.0f : y > 0.0f ? float(mnk::host::kPi) : -float(mnk::host::kPi);
    return atan(divide(y, x)) + turned;
  }
  static float cosh(float x) {
    return 0.5f * (exp(x) + exp(-x));
  }
  static float exp10(float x) {
    return exp2(x * 3.32192809488736f);
  }
  static float log10(float x) {
    return log2(x) * 0.30102999566398f;
  }
  static float pow(float x, float y) {
    return exp2(y * log2(x));
  }
  static float powr(float x, float y) {
    return exp2(y * log2(x));
  }
  static float sinh(float x) {
    return x == 0.0f ? x : 0.5f * (exp(x) - exp(-x));
  }
  static float sqrt(float x) {
    return x == 0.0f || x == __builtin_inff() ? x : x * rsqrt(x);
  }
  static float tan(float x) {
    return x == 0.0f ? x : sin(x) * reciprocal(cos(x));
  }
  static float tanh(float x) {
    if (x == 0.0f) return x;
    const float t = exp(2.0f * x);
    return divide(t - 1.0f, t + 1.0f);
  }
  static float tanpi(float x) {
    return tan(x * float(mnk::host::kPi));
  }
};

// Division of half is correctly rounded in every namespace.
template <class Math, class T>
inline T quotient(T x, T y) {
  if constexpr (Vector<T>) {
    T result;
    for (int i = 0; i < Shape<T>::count; ++i) result[i] = quotient<Math, element_of<T>>(x[i], y[i]);
    return result;
  } else if constexpr (is_same_v<T, float> || is_same_v<T, bfloat>) {
    return Math::divide(x, y);
  } else {
    return x / y;
  }
}

}  // namespace metal::perturbed

#pragma float_control(pop)
