// Common, relational and geometric functions. Functions of two scalars have one overload per type, as in Metal, so that
// a call with mixed types is an error here too.
#pragma once
#include "MetalStdlib/Math.h"

namespace metal {

#define MNK_HOST_COMMON(T)                                       \
  MNK_HOST_INLINE constexpr T min(T a, T b) {                    \
    return b < a ? b : a;                                        \
  }                                                              \
  MNK_HOST_INLINE constexpr T max(T a, T b) {                    \
    return a < b ? b : a;                                        \
  }                                                              \
  MNK_HOST_INLINE constexpr T clamp(T x, T low, T high) {        \
    return x < low ? low : high < x ? high : x;                  \
  }                                                              \
  MNK_HOST_INLINE constexpr T select(T a, T b, bool condition) { \
    return condition ? b : a;                                    \
  }
MNK_HOST_COMMON(char)
MNK_HOST_COMMON(signed char)
MNK_HOST_COMMON(uchar)
MNK_HOST_COMMON(short)
MNK_HOST_COMMON(ushort)
MNK_HOST_COMMON(int)
MNK_HOST_COMMON(uint)
MNK_HOST_COMMON(long)
MNK_HOST_COMMON(ulong)
MNK_HOST_COMMON(half)
MNK_HOST_COMMON(bfloat)
#undef MNK_HOST_COMMON
MNK_HOST_INLINE constexpr bool select(bool a, bool b, bool condition) {
  return condition ? b : a;
}
// fmin and fmax ignore a NaN if the other operand is a number.
MNK_HOST_INLINE constexpr float min(float a, float b) {
  return __builtin_fminf(a, b);
}
MNK_HOST_INLINE constexpr float max(float a, float b) {
  return __builtin_fmaxf(a, b);
}
MNK_HOST_INLINE constexpr float clamp(float x, float low, float high) {
  return __builtin_fminf(__builtin_fmaxf(x, low), high);
}
MNK_HOST_INLINE constexpr float select(float a, float b, bool condition) {
  return condition ? b : a;
}

MNK_HOST_VECTOR2(min)
MNK_HOST_VECTOR2(max)
MNK_HOST_VECTOR3(clamp)
template <Vector A>
MNK_HOST_INLINE vector_of<A> select(const A& a, identity_t<vector_of<A>> b, vec<bool, Shape<A>::count> condition) {
  vector_of<A> out = a;
  for (int i = 0; i < Shape<A>::count; ++i) {
    if (condition[i]) out[i] = b[i];
  }
  return out;
}

template <class T>
MNK_HOST_INLINE auto min3(T a, T b, T c) {
  return min(min(a, b), c);
}
template <class T>
MNK_HOST_INLINE auto max3(T a, T b, T c) {
  return max(max(a, b), c);
}
template <class T>
MNK_HOST_INLINE auto median3(T a, T b, T c) {
  return max(min(a, b), min(max(a, b), c));
}

MNK_HOST_INLINE float abs(float x) {
  return __builtin_fabsf(x);
}
template <SmallFloat S>
MNK_HOST_INLINE S abs(S x) {
  return S(__builtin_fabsf((float)x));
}
template <Integer I>
MNK_HOST_INLINE I abs(I x) {
  return x < I(0) ? I(I(0) - x) : x;
}
MNK_HOST_VECTOR1(abs)

template <FloatScalar T>
MNK_HOST_INLINE T mix(T a, identity_t<T> b, identity_t<T> t) {
  return T(a + T(T(b - a) * t));
}
MNK_HOST_VECTOR3(mix)
template <FloatScalar T>
MNK_HOST_INLINE T step(T edge, identity_t<T> x) {
  return x < edge ? T(0.0f) : T(1.0f);
}
template <Vector A>
MNK_HOST_INLINE vector_of<A> step(const A& edge, identity_t<vector_of<A>> x) {
  return select(vector_of<A>(1.0f), vector_of<A>(0.0f), x < edge);
}
template <FloatScalar T>
MNK_HOST_INLINE T smoothstep(T low, identity_t<T> high, identity_t<T> x) {
  const T t = saturate(divide(T(x - low), T(high - low)));
  return T(T(t * t) * T(T(3.0f) - T(T(2.0f) * t)));
}
MNK_HOST_VECTOR3(smoothstep)

template <class A, class B, class V = typename Joined<A, B>::type>
requires(Vector<A>&& Vector<B>) MNK_HOST_INLINE element_of<V> dot(const A& a, const B& b) {
  using T = element_of<V>;
  const V x = a, y = b;
  T sum = T(x[0] * y[0]);
  for (int i = 1; i < Shape<V>::count; ++i) sum = T(sum + T(x[i] * y[i]));
  return sum;
}
template <Vector A>
MNK_HOST_INLINE element_of<A> length_squared(const A& a) {
  return dot(a, a);
}
template <Vector A>
MNK_HOST_INLINE element_of<A> length(const A& a) {
  return sqrt(dot(a, a));
}
template <Vector A>
MNK_HOST_INLINE element_of<A> distance_squared(const A& a, identity_t<vector_of<A>> b) {
  return length_squared(a - b);
}
template <Vector A>
MNK_HOST_INLINE element_of<A> distance(const A& a, identity_t<vector_of<A>> b) {
  return length(a - b);
}
template <Vector A>
MNK_HOST_INLINE vector_of<A> normalize(const A& a) {
  return a * rsqrt(dot(a, a));
}
template <Vector A>
requires(Shape<A>::count == 3) MNK_HOST_INLINE vector_of<A> cross(const A& a, identity_t<vector_of<A>> b) {
  const vector_of<A> in = a;
  return vector_of<A>(in.yzx * b.zxy - in.zxy * b.yzx);
}
template <Vector A>
MNK_HOST_INLINE vector_of<A> reflect(const A& incident, identity_t<vector_of<A>> normal) {
  using T = element_of<A>;
  return incident - normal * T(T(2.0f) * dot(incident, normal));
}
template <Vector A>
MNK_HOST_INLINE vector_of<A> faceforward(const A& normal, identity_t<vector_of<A>> incident,
                                         identity_t<vector_of<A>> reference) {
  return dot(incident, reference) < element_of<A>(0.0f) ? vector_of<A>(normal) : -vector_of<A>(normal);
}

// Integer functions of scalars and, elementwise, of vectors.
template <Integer I>
constexpr int kBitsOf = int(sizeof(I)) * 8;

template <Integer I>
MNK_HOST_INLINE I popcount(I x) {
  return I(__builtin_popcountll(make_unsigned_t<I>(x)));
}
template <Integer I>
MNK_HOST_INLINE I clz(I x) {
  return x ? I(__builtin_clzll(make_unsigned_t<I>(x)) - (64 - kBitsOf<I>)) : I(kBitsOf<I>);
}
template <Integer I>
MNK_HOST_INLINE I ctz(I x) {
  return x ? I(__builtin_ctzll(make_unsigned_t<I>(x))) : I(kBitsOf<I>);
}
template <Integer I>
MNK_HOST_INLINE I reverse_bits(I x) {
  return I(make_unsigned_t<I>(__builtin_bitreverse64(make_unsigned_t<I>(x)) >> (64 - kBitsOf<I>)));
}
template <Integer I>
MNK_HOST_INLINE I rotate(I x, identity_t<I> count) {
  const auto bits = make_unsigned_t<I>(x);
  const int left = int(make_unsigned_t<I>(count) % kBitsOf<I>);
  return left ? I(make_unsigned_t<I>(bits << left | bits >> (kBitsOf<I> - left))) : x;
}
MNK_HOST_VECTOR1(popcount)
MNK_HOST_VECTOR1(clz)
MNK_HOST_VECTOR1(ctz)
MNK_HOST_VECTOR1(reverse_bits)
MNK_HOST_VECTOR2(rotate)

// Bits offset ..< offset + bits; a signed type extends the sign.
template <Integer I>
MNK_HOST_INLINE I extract_bits(I x, uint offset, uint bits) {
  if (bits == 0) return I(0);
  const ulong shifted = ulong(make_unsigned_t<I>(x)) << (64 - offset - bits);
  return I(-1) < I(0) ? I(long(shifted) >> (64 - bits)) : I(shifted >> (64 - bits));
}
template <Integer I>
MNK_HOST_INLINE I insert_bits(I base, identity_t<I> insert, uint offset, uint bits) {
  if (bits == 0) return base;
  const ulong mask = (~0ul >> (64 - bits)) << offset;
  return I((ulong(base) & ~mask) | ((ulong(insert) << offset) & mask));
}

template <Integer I>
MNK_HOST_INLINE I mulhi(I a, identity_t<I> b) {
  return I((__int128(a) * __int128(b)) >> kBitsOf<I>);
}
template <Integer I>
MNK_HOST_INLINE I madhi(I a, identity_t<I> b, identity_t<I> c) {
  return I(make_unsigned_t<I>(mulhi(a, b)) + make_unsigned_t<I>(c));
}
template <Integer I>
MNK_HOST_INLINE I mul24(I a, identity_t<I> b) {
  return I(make_unsigned_t<I>(a) * make_unsigned_t<I>(b));
}
template <Integer I>
MNK_HOST_INLINE I mad24(I a, identity_t<I> b, identity_t<I> c) {
  return I(make_unsigned_t<I>(mul24(a, b)) + make_unsigned_t<I>(c));
}
template <Integer I>
constexpr I kLowest = I(-1) < I(0) ? I(I(1) << (kBitsOf<I> - 1)) : I(0);
template <Integer I>
constexpr I kHighest = I(~kLowest<I>);
template <Integer I>
MNK_HOST_INLINE I addsat(I a, identity_t<I> b) {
  I sum;
  return !__builtin_add_overflow(a, b, &sum) ? sum : b < I(0) ? kLowest<I> : kHighest<I>;
}
template <Integer I>
MNK_HOST_INLINE I subsat(I a, identity_t<I> b) {
  I difference;
  return !__builtin_sub_overflow(a, b, &difference) ? difference : I(-1) < I(0) && b < I(0) ? kHighest<I> : kLowest<I>;
}
template <Integer I>
MNK_HOST_INLINE I hadd(I a, identity_t<I> b) {
  return I((a >> 1) + (b >> 1) + (a & b & I(1)));
}
template <Integer I>
MNK_HOST_INLINE I rhadd(I a, identity_t<I> b) {
  return I((a >> 1) + (b >> 1) + ((a | b) & I(1)));
}
template <Integer I>
MNK_HOST_INLINE make_unsigned_t<I> absdiff(I a, identity_t<I> b) {
  using U = make_unsigned_t<I>;
  return a < b ? U(U(b) - U(a)) : U(U(a) - U(b));
}

#undef MNK_HOST_VECTOR1
#undef MNK_HOST_VECTOR2
#undef MNK_HOST_VECTOR3

template <class T>
struct numeric_limits {
  static constexpr T max() { return kHighest<T>; }
  static constexpr T min() { return kLowest<T>; }
  static constexpr T lowest() { return kLowest<T>; }
};
#define MNK_HOST_LIMITS(T, highest, least, step)          \
  template <>                                             \
  struct numeric_limits<T> {                              \
    static constexpr T max() { return T(highest); }       \
    static constexpr T min() { return T(least); }         \
    static constexpr T lowest() { return T(-highest); }   \
    static constexpr T epsilon() { return T(step); }      \
    static constexpr T infinity() { return T(INFINITY); } \
    static constexpr T quiet_NaN() { return T(NAN); }     \
  };
MNK_HOST_LIMITS(float, FLT_MAX, FLT_MIN, FLT_EPSILON)
MNK_HOST_LIMITS(half, 65504.0f, 0x1p-14f, 0x1p-10f)
MNK_HOST_LIMITS(bfloat, 0x1.fep127f, FLT_MIN, 0x1p-7f)
#undef MNK_HOST_LIMITS

template <class T, size_t N>
struct array {
  T elements[N];
  MNK_HOST_INLINE constexpr T& operator[](size_t i) { return elements[i]; }
  MNK_HOST_INLINE constexpr const T& operator[](size_t i) const { return elements[i]; }
  MNK_HOST_INLINE constexpr size_t size() const { return N; }
};

}  // namespace metal
