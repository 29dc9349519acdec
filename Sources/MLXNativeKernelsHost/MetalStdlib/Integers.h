// Integer functions of scalars and, elementwise, of vectors.
#pragma once
#include "Common.h"

namespace metal {

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
template <>
struct numeric_limits<float> {
  static constexpr float max() { return FLT_MAX; }
  static constexpr float min() { return FLT_MIN; }
  static constexpr float lowest() { return -FLT_MAX; }
  static constexpr float epsilon() { return FLT_EPSILON; }
  static constexpr float infinity() { return INFINITY; }
  static constexpr float quiet_NaN() { return NAN; }
};
template <>
struct numeric_limits<half> {
  static constexpr half max() { return half(65504.0f); }
  static constexpr half min() { return half(0x1p-14f); }
  static constexpr half lowest() { return half(-65504.0f); }
  static constexpr half epsilon() { return half(0x1p-10f); }
  static constexpr half infinity() { return half(INFINITY); }
  static constexpr half quiet_NaN() { return half(NAN); }
};
template <>
struct numeric_limits<bfloat> {
  static constexpr bfloat max() { return bfloat(0x1.fep127f); }
  static constexpr bfloat min() { return bfloat(FLT_MIN); }
  static constexpr bfloat lowest() { return bfloat(-0x1.fep127f); }
  static constexpr bfloat epsilon() { return bfloat(0x1p-7f); }
  static constexpr bfloat infinity() { return bfloat(INFINITY); }
  static constexpr bfloat quiet_NaN() { return bfloat(NAN); }
};

template <class T, size_t N>
struct array {
  T elements[N];
  MNK_HOST_INLINE constexpr T& operator[](size_t i) { return elements[i]; }
  MNK_HOST_INLINE constexpr const T& operator[](size_t i) const { return elements[i]; }
  MNK_HOST_INLINE constexpr size_t size() const { return N; }
};

}  // namespace metal
