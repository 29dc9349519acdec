// Every math function that may have an error, once for each column of the Host device's accuracy table. Element i of
// row r is function r of operands i. HostAccuracyTests.cpp lists the same rows and computes the exact values.
#include "../../Shaders/Common/MetalCompat.h"

#define MATH_ROWS(one, two)                                                                                         \
  one(acos) one(acosh) one(asin) one(asinh) one(atan) one(atanh) one(cos) one(cosh) one(cospi) one(exp) one(exp10)  \
      one(exp2) one(log) one(log10) one(log2) one(rsqrt) one(sin) one(sinh) one(sinpi) one(sqrt) one(tan) one(tanh) \
          one(tanpi) two(atan2) two(divide) two(pow) two(powr)

kernel void preciseRows(
    device const float* x [[buffer(0)]], device const float* y [[buffer(1)]], device float* out [[buffer(2)]],
    uint at [[thread_position_in_grid]], uint count [[threads_per_grid]]) {
#define ROW1(name)                \
  out[at] = precise::name(x[at]); \
  at += count;
#define ROW2(name)                       \
  out[at] = precise::name(x[at], y[at]); \
  at += count;
  MATH_ROWS(ROW1, ROW2)
#undef ROW1
#undef ROW2
}
export_kernel(preciseRows)

kernel void fastRows(
    device const float* x [[buffer(0)]], device const float* y [[buffer(1)]], device float* out [[buffer(2)]],
    uint at [[thread_position_in_grid]], uint count [[threads_per_grid]]) {
#define ROW1(name)             \
  out[at] = fast::name(x[at]); \
  at += count;
#define ROW2(name)                    \
  out[at] = fast::name(x[at], y[at]); \
  at += count;
  MATH_ROWS(ROW1, ROW2)
#undef ROW1
#undef ROW2
}
export_kernel(fastRows)

// Without a namespace, and as vectors.
kernel void bareRows(
    device const float* x [[buffer(0)]], device const float* y [[buffer(1)]], device float* out [[buffer(2)]],
    uint at [[thread_position_in_grid]], uint count [[threads_per_grid]]) {
#define ROW1(name)                       \
  out[at] = name(float2(0.5f, x[at])).y; \
  at += count;
#define ROW2(name)                                            \
  out[at] = name(float2(0.5f, x[at]), float2(0.5f, y[at])).y; \
  at += count;
  MATH_ROWS(ROW1, ROW2)
#undef ROW1
#undef ROW2
}
export_kernel(bareRows)

kernel void halfRows(
    device const half* x [[buffer(0)]], device const half* y [[buffer(1)]], device half* out [[buffer(2)]],
    uint at [[thread_position_in_grid]], uint count [[threads_per_grid]]) {
#define ROW1(name)       \
  out[at] = name(x[at]); \
  at += count;
#define ROW2(name)              \
  out[at] = name(x[at], y[at]); \
  at += count;
  MATH_ROWS(ROW1, ROW2)
#undef ROW1
#undef ROW2
}
export_kernel(halfRows)

kernel void brainQuotients(
    device const bfloat* x [[buffer(0)]], device const bfloat* y [[buffer(1)]], device bfloat* out [[buffer(2)]],
    uint at [[thread_position_in_grid]]) {
  out[at] = fast::divide(x[at], y[at]);
}
export_kernel(brainQuotients)

// Functions that are exact in every column.
kernel void exactRows(
    device const float* x [[buffer(0)]], device const float* y [[buffer(1)]], device float* out [[buffer(2)]],
    uint at [[thread_position_in_grid]], uint count [[threads_per_grid]]) {
#define ROW(value) \
  out[at] = value; \
  at += count;
  const float a = x[at];
  const float b = y[at];
  ROW(ceil(a))
  ROW(copysign(a, b))
  ROW(fabs(a))
  ROW(fdim(a, b))
  ROW(floor(a))
  ROW(fma(a, b, a))
  ROW(fmax(a, b))
  ROW(fmin(a, b))
  ROW(precise::fmod(a, b))
  ROW(rint(a))
  ROW(round(a))
  ROW(trunc(a))
  ROW(precise::sqrt(fabs(a)))
  ROW(precise::divide(a, b))
  ROW(ldexp(a, 3))
#undef ROW
}
export_kernel(exactRows)
