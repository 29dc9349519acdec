// Vectors of two, three and four components, with swizzles. Vectors of half and bfloat round in every operation.
#pragma once
#include "Executor/Worker.h"
#include "MetalStdlib/Types.h"

#if !defined(MNK_HOST_LEVEL)
#define MNK_HOST_LEVEL 1  // MNK_HOST_BASELINE, for files without kernels
#endif

namespace metal {

template <class T>
struct Element {
  using type = T;
};
template <>
struct Element<half> {
  using type = _Float16;
};
template <>
struct Element<bfloat> {
  using type = uint16_t;
};
template <>
struct Element<bool> {
  using type = uint8_t;
};
template <class T, int N>
using raw __attribute__((ext_vector_type(N))) = typename Element<T>::type;

template <class T, int N>
struct vec;
template <class T, int N>
struct packed_vec;
template <class T, int... I>
struct Swizzle;

template <class A>
struct Shape {
  static constexpr int count = 0;
  using element = A;
};
template <class T, int N>
struct Shape<vec<T, N>> {
  static constexpr int count = N;
  using element = T;
};
template <class T, int N>
struct Shape<packed_vec<T, N>> {
  static constexpr int count = N;
  using element = T;
};
template <class T, int... I>
struct Shape<Swizzle<T, I...>> {
  static constexpr int count = sizeof...(I);
  using element = T;
};

// A type that converts to a vector, and that vector.
template <class A>
concept Vector = Shape<plain_t<A>>::count >
0;
template <Vector A>
using vector_of = vec<typename Shape<plain_t<A>>::element, Shape<plain_t<A>>::count>;
template <class A>
using element_of = typename Shape<plain_t<A>>::element;

// The type that a vector computes in: its own storage, or float for bfloat.
template <class T, int N>
MNK_HOST_INLINE constexpr auto widen(raw<T, N> v) {
  if constexpr (is_same_v<T, bfloat>) {
    return __builtin_bit_cast(raw<float, N>, __builtin_convertvector(v, raw<uint, N>) << 16);
  } else {
    return v;
  }
}

template <class T, int N, class Wide>
MNK_HOST_INLINE constexpr raw<T, N> narrow(Wide wide) {
  if constexpr (is_same_v<T, bfloat>) {
    raw<T, N> result{};
    for (int i = 0; i < N; ++i) result[i] = bfloat::roundedBits(wide[i]);
    return result;
  } else {
    return wide;
  }
}

#if defined(__x86_64__)
inline constexpr bool kIsX86 = true;
#else
inline constexpr bool kIsX86 = false;
#endif

// Exact. Takes references, because functions cannot pass long vectors without AVX.
template <int N, int Level = MNK_HOST_LEVEL>
MNK_HOST_INLINE void widenHalves(raw<float, N>& into, const raw<half, N>& from) {
  if constexpr (Level == 1 && kIsX86) {  // MNK_HOST_BASELINE: the compiler would call a function for each element
    using Bits = raw<uint, N>;
    const Bits bits = __builtin_convertvector(__builtin_bit_cast(raw<ushort, N>, from), Bits);
    const raw<float, N> number = __builtin_bit_cast(raw<float, N>, (bits & 0x7fff) << 13) * 0x1p112f;
    const Bits isInfiniteOrNaN = __builtin_bit_cast(Bits, (bits & 0x7c00) == 0x7c00);
    into = __builtin_bit_cast(
        raw<float, N>, __builtin_bit_cast(Bits, number) | (isInfiniteOrNaN & 0x7f800000) | (bits & 0x8000) << 16);
  } else {
    into = __builtin_convertvector(from, raw<float, N>);
  }
}

template <class T, int N, class U>
MNK_HOST_INLINE constexpr raw<T, N> convert(raw<U, N> v) {
  if constexpr (is_same_v<T, float> && is_same_v<U, half>) {
    if (__builtin_is_constant_evaluated()) return __builtin_convertvector(v, raw<T, N>);
    raw<T, N> wide;
    widenHalves<N>(wide, v);
    return wide;
  } else if constexpr (is_same_v<T, bool>) {
    return __builtin_convertvector(widen<U, N>(v) != 0, raw<T, N>) & 1;
  } else if constexpr (is_same_v<T, bfloat>) {
    return narrow<T, N>(__builtin_convertvector(widen<U, N>(v), raw<float, N>));
  } else {
    return __builtin_convertvector(widen<U, N>(v), raw<T, N>);
  }
}

#define MNK_HOST_VECTOR_MEMBERS(N)                                                                                     \
  vec() = default;                                                                                                     \
  vec(const vec&) = default;                                                                                           \
  MNK_HOST_INLINE vec& operator=(const vec& other) {                                                                   \
    v = other.v;                                                                                                       \
    return *this;                                                                                                      \
  }                                                                                                                    \
  static MNK_HOST_INLINE constexpr vec from(raw<T, N> r) {                                                             \
    vec result;                                                                                                        \
    result.v = r;                                                                                                      \
    return result;                                                                                                     \
  }                                                                                                                    \
  template <Scalar S>                                                                                                  \
  MNK_HOST_INLINE constexpr vec(S s) : v(splat(T(s))) {}                                                               \
  template <Double D>                                                                                                  \
  vec(D) = delete;                                                                                                     \
  template <class U>                                                                                                   \
  requires(!is_same_v<U, T>) MNK_HOST_INLINE explicit constexpr vec(vec<U, N> other) : v(convert<T, N, U>(other.v)) {} \
  template <Vector A>                                                                                                  \
  requires(!is_same_v<A, vector_of<A>> && !is_same_v<element_of<A>, T> && Shape<A>::count == N)                        \
      MNK_HOST_INLINE explicit vec(const A& other)                                                                     \
      : vec(vector_of<A>(other)) {}                                                                                    \
  template <class A, class B, class... R>                                                                              \
  MNK_HOST_INLINE vec(A a, B b, R... rest) {                                                                           \
    static_assert(((size<A>() + size<B>()) + ... + size<R>()) == N, "wrong number of vector components");              \
    T* to = reinterpret_cast<T*>(&v);                                                                                  \
    put(to, a);                                                                                                        \
    put(to, b);                                                                                                        \
    (put(to, rest), ...);                                                                                              \
  }                                                                                                                    \
  template <class I>                                                                                                   \
  MNK_HOST_INLINE T& operator[](I i) {                                                                                 \
    return reinterpret_cast<T*>(&v)[i];                                                                                \
  }                                                                                                                    \
  template <class I>                                                                                                   \
  MNK_HOST_INLINE T operator[](I i) const {                                                                            \
    return reinterpret_cast<const T*>(&v)[i];                                                                          \
  }                                                                                                                    \
  static MNK_HOST_INLINE constexpr raw<T, N> splat(T s) {                                                              \
    return (raw<T, N>)(__builtin_bit_cast(typename Element<T>::type, s));                                              \
  }                                                                                                                    \
  template <class A>                                                                                                   \
  static constexpr int size() {                                                                                        \
    return Vector<A> ? Shape<plain_t<A>>::count : 1;                                                                   \
  }                                                                                                                    \
  template <class A>                                                                                                   \
  static MNK_HOST_INLINE void put(T*& to, const A& a) {                                                                \
    if constexpr (Vector<A>) {                                                                                         \
      const vector_of<A> all = a;                                                                                      \
      for (int i = 0; i < size<A>(); ++i) *to++ = T(all[i]);                                                           \
    } else {                                                                                                           \
      *to++ = T(a);                                                                                                    \
    }                                                                                                                  \
  }

template <class T>
struct vec<T, 2> {
  union {
    raw<T, 2> v;
    struct {
      T x, y;
    };
    struct {
      T r, g;
    };
    MNK_HOST_SWIZZLES_2
  };
  MNK_HOST_VECTOR_MEMBERS(2)
};

template <class T>
struct vec<T, 3> {
  union {
    raw<T, 3> v;
    struct {
      T x, y, z;
    };
    struct {
      T r, g, b;
    };
    MNK_HOST_SWIZZLES_3
  };
  MNK_HOST_VECTOR_MEMBERS(3)
};

template <class T>
struct vec<T, 4> {
  union {
    raw<T, 4> v;
    struct {
      T x, y, z, w;
    };
    struct {
      T r, g, b, a;
    };
    MNK_HOST_SWIZZLES_4
  };
  MNK_HOST_VECTOR_MEMBERS(4)
};
#undef MNK_HOST_VECTOR_MEMBERS

template <int... I>
constexpr int kHighestIndex = [] {
  int top = 0;
  ((top = I > top ? I : top), ...);
  return top;
}();

// Stored in a vec's union, at its address.
template <class T, int... I>
struct Swizzle {
  T at[kHighestIndex<I...> + 1];
  Swizzle() = default;
  Swizzle(const Swizzle&) = default;
  MNK_HOST_INLINE operator vec<T, sizeof...(I)>() const { return vec<T, sizeof...(I)>(at[I]...); }
  MNK_HOST_INLINE Swizzle& operator=(vec<T, sizeof...(I)> from) {
    int next = 0;
    ((at[I] = from[next++]), ...);
    return *this;
  }
  MNK_HOST_INLINE Swizzle& operator=(const Swizzle& from) { return *this = (vec<T, sizeof...(I)>)from; }
};

// vector op vector needs equal types; vector op scalar converts the scalar to the element type.
template <class A, class B>
struct Joined {};
template <Vector A, Vector B>
requires(is_same_v<vector_of<A>, vector_of<B>>) struct Joined<A, B> {
  using type = vector_of<A>;
};
template <Vector A, Scalar B>
struct Joined<A, B> {
  using type = vector_of<A>;
};
template <Scalar A, Vector B>
struct Joined<A, B> {
  using type = vector_of<B>;
};

#if MNK_HOST_CHECKED
// The compiler's checks do not cover vector elements.
template <class T, int N>
MNK_HOST_INLINE constexpr void checkOperator(const char* op, raw<T, N> a, raw<T, N> b) {
  if constexpr (__is_integral(T) && !is_same_v<T, bool>) {
    if (__builtin_is_constant_evaluated()) return;
    T ignored;
    for (int i = 0; i < N; ++i) {
      if ((op[0] == '/' || op[0] == '%') && b[i] == 0) mnk::host::check::vectorDivision();
      if (sizeof(T) < sizeof(int)) continue;
      const T left = a[i], right = b[i];
      if (op[0] == '+' && __builtin_add_overflow(left, right, &ignored)) {
        mnk::host::check::vectorOverflow("an addition of vectors overflows");
      }
      if (op[0] == '*' && __builtin_mul_overflow(left, right, &ignored)) {
        mnk::host::check::vectorOverflow("a multiplication of vectors overflows");
      }
    }
  }
}
#define MNK_HOST_CHECK_OPERATOR(op) checkOperator<T, N>(#op, V(a).v, V(b).v)
#else
#define MNK_HOST_CHECK_OPERATOR(op) static_cast<void>(0)
#endif

#define MNK_HOST_OPERATOR(op)                                                                 \
  template <class A, class B>                                                                 \
  MNK_HOST_INLINE constexpr typename Joined<A, B>::type operator op(const A& a, const B& b) { \
    using V = typename Joined<A, B>::type;                                                    \
    using T = element_of<V>;                                                                  \
    constexpr int N = Shape<V>::count;                                                        \
    MNK_HOST_CHECK_OPERATOR(op);                                                              \
    return V::from(narrow<T, N>(widen<T, N>(V(a).v) op widen<T, N>(V(b).v)));                 \
  }                                                                                           \
  template <Vector A, class B, class = typename Joined<A, B>::type>                           \
  MNK_HOST_INLINE A& operator op##=(A& a, const B& b) {                                       \
    return a = a op b;                                                                        \
  }
MNK_HOST_OPERATOR(+)
MNK_HOST_OPERATOR(-)
MNK_HOST_OPERATOR(*)
MNK_HOST_OPERATOR(/)
MNK_HOST_OPERATOR(%)
MNK_HOST_OPERATOR(&)
MNK_HOST_OPERATOR(|)
MNK_HOST_OPERATOR(^)
MNK_HOST_OPERATOR(<<)
MNK_HOST_OPERATOR(>>)
#undef MNK_HOST_OPERATOR
#undef MNK_HOST_CHECK_OPERATOR

#define MNK_HOST_OPERATOR(op)                                                                                          \
  template <class A, class B>                                                                                          \
  MNK_HOST_INLINE constexpr vec<bool, Shape<typename Joined<A, B>::type>::count> operator op(const A& a, const B& b) { \
    using V = typename Joined<A, B>::type;                                                                             \
    using T = element_of<V>;                                                                                           \
    constexpr int N = Shape<V>::count;                                                                                 \
    return vec<bool, N>::from(__builtin_convertvector(widen<T, N>(V(a).v) op widen<T, N>(V(b).v), raw<bool, N>) & 1);  \
  }
MNK_HOST_OPERATOR(<)
MNK_HOST_OPERATOR(>)
MNK_HOST_OPERATOR(<=)
MNK_HOST_OPERATOR(>=)
MNK_HOST_OPERATOR(==)
MNK_HOST_OPERATOR(!=)
#undef MNK_HOST_OPERATOR

template <Vector A>
MNK_HOST_INLINE vector_of<A> operator-(const A& a) {
  using T = element_of<A>;
  constexpr int N = Shape<A>::count;
  return vec<T, N>::from(narrow<T, N>(-widen<T, N>(vector_of<A>(a).v)));
}
template <Vector A>
MNK_HOST_INLINE vector_of<A> operator~(const A& a) {
  return vector_of<A>::from(~vector_of<A>(a).v);
}
template <int N>
MNK_HOST_INLINE vec<bool, N> operator!(vec<bool, N> a) {
  return vec<bool, N>::from(a.v ^ 1);
}
template <int N>
MNK_HOST_INLINE vec<bool, N> operator&&(vec<bool, N> a, vec<bool, N> b) {
  return vec<bool, N>::from(a.v & b.v);
}
template <int N>
MNK_HOST_INLINE vec<bool, N> operator||(vec<bool, N> a, vec<bool, N> b) {
  return vec<bool, N>::from(a.v | b.v);
}
template <int N>
MNK_HOST_INLINE bool any(vec<bool, N> a) {
  bool result = false;
  for (int i = 0; i < N; ++i) result |= a[i];
  return result;
}
template <int N>
MNK_HOST_INLINE bool all(vec<bool, N> a) {
  bool result = true;
  for (int i = 0; i < N; ++i) result &= a[i];
  return result;
}

#define MNK_HOST_NAMES(T)                 \
  typedef vec<T, 2> T##2;                 \
  typedef vec<T, 3> T##3;                 \
  typedef vec<T, 4> T##4;                 \
  typedef packed_vec<T, 2> packed_##T##2; \
  typedef packed_vec<T, 3> packed_##T##3; \
  typedef packed_vec<T, 4> packed_##T##4;
MNK_HOST_NAMES(bool)
MNK_HOST_NAMES(char)
MNK_HOST_NAMES(uchar)
MNK_HOST_NAMES(short)
MNK_HOST_NAMES(ushort)
MNK_HOST_NAMES(int)
MNK_HOST_NAMES(uint)
MNK_HOST_NAMES(long)
MNK_HOST_NAMES(ulong)
MNK_HOST_NAMES(half)
MNK_HOST_NAMES(bfloat)
MNK_HOST_NAMES(float)
#undef MNK_HOST_NAMES

}  // namespace metal
