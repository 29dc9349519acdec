// Every math function that may have an error, once for each column of the Host device's accuracy table. Element i of
// row r is function r of operands i. HostAccuracyTests.cpp lists the same rows and computes the exact values.
#include "../../Shaders/Common/MetalCompat.h"

#define MATH_ROWS(one, two)                                                                                         \
  one(acos) one(acosh) one(asin) one(asinh) one(atan) one(atanh) one(cos) one(cosh) one(cospi) one(exp) one(exp10)  \
      one(exp2) one(log) one(log10) one(log2) one(rsqrt) one(sin) one(sinh) one(sinpi) one(sqrt) one(tan) one(tanh) \
          one(tanpi) two(atan2) two(divide) two(pow) two(powr)

// A kernel that writes row after row.
#define COLUMN(column, type, one, two)                                                                        \
  kernel void column(                                                                                         \
      device const type* x [[buffer(0)]], device const type* y [[buffer(1)]], device type* out [[buffer(2)]], \
      uint at [[thread_position_in_grid]], uint count [[threads_per_grid]]){MATH_ROWS(one, two)} export_kernel(column)
#define ROW(value) \
  out[at] = value; \
  at += count;

#define PRECISE1(name) ROW(precise::name(x[at]))
#define PRECISE2(name) ROW(precise::name(x[at], y[at]))
COLUMN(preciseRows, float, PRECISE1, PRECISE2)

#define FAST1(name) ROW(fast::name(x[at]))
#define FAST2(name) ROW(fast::name(x[at], y[at]))
COLUMN(fastRows, float, FAST1, FAST2)

// Without a namespace, and as vectors.
#define BARE1(name) ROW(name(float2(0.5f, x[at])).y)
#define BARE2(name) ROW(name(float2(0.5f, x[at]), float2(0.5f, y[at])).y)
COLUMN(bareRows, float, BARE1, BARE2)

#define HALF1(name) ROW(name(x[at]))
#define HALF2(name) ROW(name(x[at], y[at]))
COLUMN(halfRows, half, HALF1, HALF2)

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
}
export_kernel(exactRows)
