// The maximum error of each math function: the tables of the Metal Shading Language Specification, chapter "Numerical
// Compliance", as one table. Plain C++, so that tests can read it too.
//
// The operators + - * are always correctly rounded. With fast math, the operator / of float is not (the row "divide"),
// but operators of float cannot be replaced: only a call of divide() can be perturbed.
#pragma once
#include <stdint.h>

#include "Executor/Fiber.h"

namespace mnk::host {

enum class Promise : uint8_t {
  exact,        // correctly rounded, or without error
  ulps,         // this many units in the last place, for operand magnitudes from least to most
  growingUlps,  // this many, plus one for each half of the operand's magnitude
  distance,     // this far, for operand magnitudes from least to most; this many ulps elsewhere
  formula,      // the specification gives a formula instead: the errors of its parts add up
  nothing,      // the specification leaves the result open
};

// There is no bound for an operand outside least ... most, unless the row gives one.
struct Bound {
  Promise promise;
  double ulps = 0;
  double distance = 0;
  double least = 0, most = __builtin_inf();
};

inline constexpr Bound kExact = {Promise::exact};
inline constexpr Bound kFormula = {Promise::formula};
inline constexpr Bound kNothing = {Promise::nothing};

constexpr Bound ulps(double count, double least = 0, double most = __builtin_inf()) {
  return {.promise = Promise::ulps, .ulps = count, .least = least, .most = most};
}
constexpr Bound growingUlps(double count) {
  return {.promise = Promise::growingUlps, .ulps = count};
}
constexpr Bound within(double distance, double least, double most, double ulpsElsewhere = 0) {
  return {.promise = Promise::distance, .ulps = ulpsElsewhere, .distance = distance, .least = least, .most = most};
}

// precise: float in precise::. fast: float in fast:: and without a namespace. half: half, in any namespace. bfloat has
// rows only for its operators; its functions are those of float, rounded.
struct Accuracy {
  const char* name;
  Bound precise, fast, half;
};

inline constexpr double kPi = 3.14159265358979323846;

inline constexpr Accuracy kAccuracies[] = {
    {"acos", ulps(4), ulps(5, 0, 1), ulps(1)},
    {"acosh", ulps(4), kFormula, ulps(1)},
    {"asin", ulps(4), ulps(5, 0x1p-125, 1), ulps(1)},
    {"asinh", ulps(4), kFormula, ulps(1)},
    {"atan", ulps(5), ulps(5), ulps(1)},
    {"atan2", ulps(6), kFormula, ulps(1)},
    {"atanh", ulps(5), kFormula, ulps(1)},
    {"ceil", kExact, kExact, kExact},
    {"copysign", kExact, kExact, kExact},
    {"cos", ulps(4), within(0x1p-13, 0, kPi), ulps(1)},
    {"cosh", ulps(4), kFormula, ulps(1)},
    {"cospi", ulps(4), within(0x1p-13, 0, 1), ulps(1)},
    {"divide", kExact, ulps(2.5, 0x1p-126, 0x1p126), kExact},
    {"exp", ulps(4), growingUlps(3), ulps(1)},
    {"exp10", ulps(4), kFormula, ulps(1)},
    {"exp2", ulps(4), growingUlps(3), ulps(1)},
    {"fabs", kExact, kExact, kExact},
    {"fdim", kExact, kExact, kExact},
    {"floor", kExact, kExact, kExact},
    {"fma", kExact, kExact, kExact},
    {"fmax", kExact, kExact, kExact},
    {"fmin", kExact, kExact, kExact},
    {"fmod", kExact, kNothing, kExact},
    {"fract", kExact, kExact, kExact},
    {"frexp", kExact, kExact, kExact},
    {"ilogb", kExact, kExact, kExact},
    {"ldexp", kExact, kExact, kExact},
    {"log", ulps(4), within(0x1p-21, 0.5, 2, 3), ulps(1)},
    {"log10", ulps(4), kFormula, ulps(1)},
    {"log2", ulps(4), within(0x1p-22, 0.5, 2, 2), ulps(1)},
    {"modf", kExact, kExact, kExact},
    {"nextafter", kExact, kExact, kExact},
    // The specification has no row for powers of half.
    {"pow", ulps(16), kFormula, ulps(2)},
    {"powr", ulps(16), kFormula, ulps(2)},
    {"reciprocal", kExact, ulps(1, 0x1p-126, 0x1p126), kExact},
    {"rint", kExact, kExact, kExact},
    {"round", kExact, kExact, kExact},
    {"rsqrt", kExact, ulps(2), kExact},
    {"sin", ulps(4), within(0x1p-13, 0, kPi), ulps(1)},
    {"sincos", ulps(4), within(0x1p-13, 0, kPi), ulps(1)},
    {"sinh", ulps(4), kFormula, ulps(1)},
    {"sinpi", ulps(4), within(0x1p-13, 0, 1), ulps(1)},
    {"sqrt", kExact, kFormula, kExact},
    {"tan", ulps(6), kFormula, ulps(1)},
    {"tanh", ulps(5), kFormula, ulps(1)},
    {"tanpi", ulps(6), kFormula, ulps(1)},
    {"trunc", kExact, kExact, kExact},
};
// Division of bfloat, with fast math.
inline constexpr Bound kBrainDivide = ulps(0.6, 0x1p-126, 0x1p126);

// A name without a row does not compile.
consteval const Accuracy& accuracyOf(const char* name) {
  const Accuracy* found = nullptr;
  for (const Accuracy& accuracy : kAccuracies) {
    if (__builtin_strcmp(accuracy.name, name) == 0) found = &accuracy;
  }
  return *found;
}

struct FloatFormat {
  int fractionBits;
  int leastExponent;  // of a normal number
};
inline constexpr FloatFormat kSingle = {23, -126}, kHalf = {10, -14}, kBrain = {7, -126};

// The distance between adjacent numbers around this finite number.
MNK_HOST_RUNTIME constexpr double ulpAt(double value, FloatFormat format) {
  int exponent = int(__builtin_bit_cast(uint64_t, value) >> 52 & 0x7ff) - 1023;
  if (exponent < format.leastExponent) exponent = format.leastExponent;
  return __builtin_bit_cast(double, uint64_t(exponent - format.fractionBits + 1023) << 52);
}

// The allowed distance from the exact value, which is finite. Formulas have no bound.
MNK_HOST_RUNTIME constexpr double allowedError(const Bound& bound, double operand, double exact, FloatFormat format) {
  const double magnitude = operand < 0 ? -operand : operand;
  const double ulp = ulpAt(exact, format);
  const bool inside = magnitude >= bound.least && magnitude <= bound.most;
  if (bound.promise == Promise::ulps && inside) return bound.ulps * ulp;
  if (bound.promise == Promise::growingUlps) return (bound.ulps + double(int64_t(2 * magnitude))) * ulp;
  if (bound.promise != Promise::distance) return 0.5 * ulp;
  if (inside) return bound.distance;
  // Outside its range, the sine's error is only specified to be larger: range reduction loses accuracy in proportion.
  return bound.ulps > 0 ? bound.ulps * ulp : bound.distance * magnitude / bound.most;
}

}  // namespace mnk::host
