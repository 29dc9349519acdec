// Element types under the names that the host gives them, and conversions that round once, to nearest even.
#pragma once
#include "FloatTypes.h"
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

// Loads and stores four neighboring elements, as floats, of a type that a function constant selects. Uses vector
// accesses if the host found the memory aligned.
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

inline void storeElement(device uchar* into, uint type, ulong index, float x) {
  if (type == uint(kFloat32)) {
    reinterpret_cast<device float*>(into)[index] = x;
  } else if (type == uint(kFloat16)) {
    reinterpret_cast<device half*>(into)[index] = rounded(x, half());
  } else {
    reinterpret_cast<device bfloat*>(into)[index] = rounded(x, bfloat());
  }
}

// x rounded to the nearest values of the type.
inline float4 roundedAs(float4 x, uint type) {
  if (type == uint(kFloat32)) {
    return x;
  }
  return type == uint(kFloat16) ? floatsOf(roundedFour(x, half())) : floatsOf(roundedFour(x, bfloat()));
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

inline uint2 wordsOfFloats(float4 x, uint type) {  // for 16-bit types
  return type == uint(kFloat16) ? as_type<uint2>(roundedFour(x, half())) : as_type<uint2>(roundedFour(x, bfloat()));
}
inline void storeTwo(device uchar* into, uint type, bool isVectorized, ulong index, float2 x) {
  if (!isVectorized) {
    storeElement(into, type, index, x.x);
    storeElement(into, type, index + 1u, x.y);
  } else if (type == uint(kFloat32)) {
    *reinterpret_cast<device float2*>(into + 4u * index) = x;
  } else {
    *reinterpret_cast<device uint*>(into + 2u * index) = wordsOfFloats(float4(x.x, x.y, 0.0f, 0.0f), type).x;
  }
}

// Loads 1, 2, 4, 8 or 16 bytes, in one access if they are aligned, into the words that they fill.
inline void loadBytes(device const uchar* from, uint bytes, bool isAligned, thread uint* words) {
  if (!isAligned) {
    for (uint i = 0; i < bytes; ++i) {
      words[i / 4u] = (i % 4u == 0u ? 0u : words[i / 4u]) | (uint(from[i]) << (8u * (i % 4u)));
    }
  } else if (bytes == 16u) {
    const uint4 x = *reinterpret_cast<device const uint4*>(from);
    words[0] = x.x;
    words[1] = x.y;
    words[2] = x.z;
    words[3] = x.w;
  } else if (bytes == 8u) {
    const uint2 x = *reinterpret_cast<device const uint2*>(from);
    words[0] = x.x;
    words[1] = x.y;
  } else if (bytes == 4u) {
    words[0] = *reinterpret_cast<device const uint*>(from);
  } else if (bytes == 2u) {
    words[0] = *reinterpret_cast<device const ushort*>(from);
  } else {
    words[0] = *from;
  }
}
inline void storeBytes(device uchar* into, uint bytes, bool isAligned, thread const uint* words) {
  if (!isAligned) {
    for (uint i = 0; i < bytes; ++i) {
      into[i] = uchar((words[i / 4u] >> (8u * (i % 4u))) & 0xffu);
    }
  } else if (bytes == 16u) {
    *reinterpret_cast<device uint4*>(into) = uint4(words[0], words[1], words[2], words[3]);
  } else if (bytes == 8u) {
    *reinterpret_cast<device uint2*>(into) = uint2(words[0], words[1]);
  } else {
    *reinterpret_cast<device uint*>(into) = words[0];
  }
}

// Loads `Chunks` groups of four elements as words. Conversion is left for later, because it would stall on the load.
template <ushort Chunks>
MNK_SHARED void loadChunks(device const uchar* from, uint type, bool isAligned, ulong index, thread uint* words) {
  const uint size = type == uint(kFloat32) ? 4u : 2u;
  const uint bytes = 4u * Chunks * size;
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    if (16u * i < bytes) {
      loadBytes(from + index * size + 16u * i, min(bytes, 16u), isAligned, words + 4u * i);
    }
  }
}
template <ushort Chunks>
MNK_SHARED void storeWords(device uchar* into, uint type, bool isAligned, ulong index, thread const uint* words) {
  const uint size = type == uint(kFloat32) ? 4u : 2u;
  const uint bytes = 4u * Chunks * size;
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    if (16u * i < bytes) {
      storeBytes(into + index * size + 16u * i, min(bytes, 16u), isAligned, words + 4u * i);
    }
  }
}
inline float4 floatsOfWords(thread const uint* words, uint type, ushort chunk) {
  if (type == uint(kFloat32)) {
    words += 4 * chunk;
    return as_type<float4>(uint4(words[0], words[1], words[2], words[3]));
  }
  const uint a = words[2 * chunk];
  const uint b = words[2 * chunk + 1];
  if (type == uint(kFloat16)) {
    return float4(as_type<half4>(uint2(a, b)));
  }
  return as_type<float4>(uint4(a << 16, a & 0xffff0000u, b << 16, b & 0xffff0000u));
}
template <ushort Chunks>
MNK_SHARED void storeChunks(device uchar* into, uint type, bool isAligned, ulong index, thread const float4* x) {
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    if (type == uint(kFloat32) || !isAligned || Chunks == 1) {
      storeFour(into, type, isAligned, index + 4u * i, x[i]);
    } else if (i % 2 == 0) {
      const float4 next = x[i + (Chunks == 1 ? 0 : 1)];
      *reinterpret_cast<device uint4*>(into + 2u * (index + 4u * i)) =
          uint4(wordsOfFloats(x[i], type), wordsOfFloats(next, type));
    }
  }
}

// Means and channel scales, at any multiple of four bytes.
inline float4 fourFloats(device const float* from, ulong index) {
  return float4(from[index], from[index + 1u], from[index + 2u], from[index + 3u]);
}
