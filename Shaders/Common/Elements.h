// Element types under the names that the host gives them, and conversions that round once, to nearest even.
#pragma once
#include "MetalCompat.h"

typedef float f32;
typedef half f16;
typedef bfloat bf16;

// Converts bits, because a GPU may flush subnormal floats to zero, and bfloat, with the exponent range of float, has
// subnormals.
inline float floatOf(bfloat x) {
  return as_type<float>(uint(as_type<ushort>(x)) << 16);
}
inline float floatOf(half x) {
  return float(x);
}
inline float floatOf(float x) {
  return x;
}

// The second argument only names the type.
inline bfloat rounded(float x, bfloat) {
  const uint bits = as_type<uint>(x);
  const bool isNan = (bits & 0x7fffffffu) > 0x7f800000u;
  // A NaN is made quiet and not rounded, because a carry could change it to another value.
  const uint halfUp = isNan ? 0u : 0x7fffu + ((bits >> 16) & 1u);
  const uint quiet = isNan ? 0x400000u : 0u;
  return as_type<bfloat>(ushort(((bits | quiet) + halfUp) >> 16));
}
inline half rounded(float x, half) {
  return half(x);
}
inline float rounded(float x, float) {
  return x;
}

// Goes through float, which holds every half and bfloat exactly.
template <typename To, typename From>
inline To convertElement(From x) {
  return rounded(floatOf(x), To());
}

// Converts four at once, for processors with vector conversions.
inline float4 floatsOf(bfloat4 x) {
  return float4(floatOf(x.x), floatOf(x.y), floatOf(x.z), floatOf(x.w));
}
inline float4 floatsOf(half4 x) {
  return float4(x);
}
inline float4 floatsOf(float4 x) {
  return x;
}
inline bfloat4 roundedFour(float4 x, bfloat) {
  return bfloat4(rounded(x.x, bfloat()), rounded(x.y, bfloat()), rounded(x.z, bfloat()), rounded(x.w, bfloat()));
}
inline half4 roundedFour(float4 x, half) {
  return half4(x);
}
inline float4 roundedFour(float4 x, float) {
  return x;
}
template <typename To, typename From>
inline vec<To, 4> convertElements(vec<From, 4> x) {
  return roundedFour(floatsOf(x), To());
}

// Copies bits unchanged if both types are the same; converts otherwise.
inline float copied(float x, float) {
  return x;
}
inline half copied(half x, half) {
  return x;
}
inline bfloat copied(bfloat x, bfloat) {
  return x;
}
template <typename To, typename From>
inline To copied(From x, To) {
  return convertElement<To>(x);
}
