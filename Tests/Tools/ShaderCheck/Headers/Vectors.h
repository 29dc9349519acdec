// Vectors of Metal Shading Language for the strict compile: their conversions and operators. Nothing here runs, so
// operators are declared and not defined.
#pragma once
#include "Types.h"

namespace metal {

template <typename T, int N>
struct vec;

// A swizzle, as in v.xy. It converts to a vector; only one without repeated letters is assignable.
template <typename Vector, bool canAssign>
struct Swizzle;

template <typename T, int N>
struct Swizzle<vec<T, N>, false> {
  T first;
  operator vec<T, N>() const;
  operator vec<T, N>() const __constant;
  T operator[](int) const;
};

template <typename T, int N>
struct Swizzle<vec<T, N>, true> : Swizzle<vec<T, N>, false> {
  void operator=(vec<T, N>);
  void operator+=(vec<T, N>);
  void operator-=(vec<T, N>);
  void operator*=(vec<T, N>);
  void operator/=(vec<T, N>);
};

#define STRICT_ARITHMETIC(op)       \
  friend vec operator op(vec, vec); \
  void operator op##=(vec);
#define STRICT_COMPARISON(op) friend vec<bool, kCount> operator op(vec, vec);

#define STRICT_SPLAT_2(element) element, element
#define STRICT_SPLAT_3(element) element, element, element
#define STRICT_SPLAT_4(element) element, element, element, element

#define STRICT_VECTOR(count)                                                                                       \
  enum { kCount = count };                                                                                         \
  constexpr vec() = default;                                                                                       \
  constexpr vec(const vec&) = default;                                                                             \
  vec(const __constant vec&);                                                                                      \
  template <typename S, typename Require<WidensTo<S, T>::value>::Type = 0>                                         \
  constexpr vec(S s) : vec(STRICT_SPLAT_##count(static_cast<T>(s))) {}                                             \
  template <typename S, typename Require<IsScalar<S>::value && !WidensTo<S, T>::value>::Type = 0, typename = void> \
  constexpr explicit vec(S s) : vec(STRICT_SPLAT_##count(static_cast<T>(s))) {}                                    \
  template <typename U, typename Require<!AreSame<U, T>::value>::Type = 0>                                         \
  explicit vec(const vec<U, count>&);                                                                              \
  template <typename U, typename Require<!AreSame<U, T>::value>::Type = 0>                                         \
  explicit vec(const __constant vec<U, count>&);                                                                   \
  template <typename U, bool canAssign, typename Require<!AreSame<U, T>::value>::Type = 0>                         \
  explicit vec(const Swizzle<vec<U, count>, canAssign>&);                                                          \
  vec& operator=(const vec&) = default;                                                                            \
  void operator=(const __constant vec&);                                                                           \
  T operator[](int) const;                                                                                         \
  T operator[](int) const __constant;                                                                              \
  T& operator[](int);                                                                                              \
  STRICT_ARITHMETIC(+)                                                                                             \
  STRICT_ARITHMETIC(-)                                                                                             \
  STRICT_ARITHMETIC(*)                                                                                             \
  STRICT_ARITHMETIC(/)                                                                                             \
  STRICT_ARITHMETIC(%)                                                                                             \
  STRICT_ARITHMETIC(&)                                                                                             \
  STRICT_ARITHMETIC(|)                                                                                             \
  STRICT_ARITHMETIC(^)                                                                                             \
  STRICT_ARITHMETIC(<<)                                                                                            \
  STRICT_ARITHMETIC(>>)                                                                                            \
  STRICT_COMPARISON(==)                                                                                            \
  STRICT_COMPARISON(!=)                                                                                            \
  STRICT_COMPARISON(<)                                                                                             \
  STRICT_COMPARISON(>)                                                                                             \
  STRICT_COMPARISON(<=)                                                                                            \
  STRICT_COMPARISON(>=)                                                                                            \
  STRICT_COMPARISON(&&)                                                                                            \
  STRICT_COMPARISON(||)                                                                                            \
  friend vec operator-(vec);                                                                                       \
  friend vec operator~(vec);                                                                                       \
  friend vec<bool, kCount> operator!(vec);

template <typename T>
struct __attribute__((aligned(2 * sizeof(T)))) vec<T, 2> {
  union {
    struct {
      T x, y;
    };
    struct {
      T r, g;
    };
    STRICT_SWIZZLES_2
  };
  STRICT_VECTOR(2)
  constexpr vec(T a, T b) : x(a), y(b) {}
};

template <typename T>
struct __attribute__((aligned(4 * sizeof(T)))) vec<T, 3> {
  union {
    struct {
      T x, y, z;
    };
    struct {
      T r, g, b;
    };
    STRICT_SWIZZLES_3
  };
  STRICT_VECTOR(3)
  constexpr vec(T a, T b, T c) : x(a), y(b), z(c) {}
  vec(vec<T, 2>, T);
  vec(T, vec<T, 2>);
};

template <typename T>
struct __attribute__((aligned(4 * sizeof(T)))) vec<T, 4> {
  union {
    struct {
      T x, y, z, w;
    };
    struct {
      T r, g, b, a;
    };
    STRICT_SWIZZLES_4
  };
  STRICT_VECTOR(4)
  constexpr vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
  vec(vec<T, 2>, vec<T, 2>);
  vec(vec<T, 2>, T, T);
  vec(T, T, vec<T, 2>);
  vec(T, vec<T, 2>, T);
  vec(vec<T, 3>, T);
  vec(T, vec<T, 3>);
};

#define STRICT_VECTOR_NAMES(type) \
  typedef vec<type, 2> type##2;   \
  typedef vec<type, 3> type##3;   \
  typedef vec<type, 4> type##4;
STRICT_VECTOR_NAMES(bool)
STRICT_VECTOR_NAMES(char)
STRICT_VECTOR_NAMES(uchar)
STRICT_VECTOR_NAMES(short)
STRICT_VECTOR_NAMES(ushort)
STRICT_VECTOR_NAMES(int)
STRICT_VECTOR_NAMES(uint)
STRICT_VECTOR_NAMES(long)
STRICT_VECTOR_NAMES(ulong)
STRICT_VECTOR_NAMES(half)
STRICT_VECTOR_NAMES(float)
STRICT_VECTOR_NAMES(bfloat)

}  // namespace metal
