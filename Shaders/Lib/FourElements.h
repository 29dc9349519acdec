// Four neighboring elements of a type that a function constant names, as floats. Vectors are loaded and stored at once
// where the host found that they are aligned.
#pragma once
#include "../Types/FloatTypes.h"
#include "Elements.h"

template <typename T>
inline float4 fourOf(device const T* from, bool isVectorized) {
  if (isVectorized) {
    return floatsOf(*reinterpret_cast<device const vec<T, 4>*>(from));
  }
  return float4(floatOf(from[0]), floatOf(from[1]), floatOf(from[2]), floatOf(from[3]));
}

inline float4 loadFour(device const uchar* from, uint type, bool isVectorized, ulong index) {
  if (type == uint(kFloat32)) {
    return fourOf(reinterpret_cast<device const float*>(from) + index, isVectorized);
  }
  if (type == uint(kFloat16)) {
    return fourOf(reinterpret_cast<device const half*>(from) + index, isVectorized);
  }
  return fourOf(reinterpret_cast<device const bfloat*>(from) + index, isVectorized);
}

// One element.
inline float loadElement(device const uchar* from, uint type, ulong index) {
  if (type == uint(kFloat32)) {
    return reinterpret_cast<device const float*>(from)[index];
  }
  if (type == uint(kFloat16)) {
    return floatOf(reinterpret_cast<device const half*>(from)[index]);
  }
  return floatOf(reinterpret_cast<device const bfloat*>(from)[index]);
}

template <typename T>
inline void setFour(device T* into, bool isVectorized, float4 x) {
  const vec<T, 4> four = roundedFour(x, T());
  if (isVectorized) {
    *reinterpret_cast<device vec<T, 4>*>(into) = four;
  } else {
    into[0] = four.x;
    into[1] = four.y;
    into[2] = four.z;
    into[3] = four.w;
  }
}

inline void storeFour(device uchar* into, uint type, bool isVectorized, ulong index, float4 x) {
  if (type == uint(kFloat32)) {
    setFour(reinterpret_cast<device float*>(into) + index, isVectorized, x);
  } else if (type == uint(kFloat16)) {
    setFour(reinterpret_cast<device half*>(into) + index, isVectorized, x);
  } else {
    setFour(reinterpret_cast<device bfloat*>(into) + index, isVectorized, x);
  }
}

// Means and channel scales, at any multiple of four bytes.
inline float4 fourFloats(device const float* from, ulong index) {
  return float4(from[index], from[index + 1u], from[index + 2u], from[index + 3u]);
}
