// packed_float3 and the like: vectors with the alignment of their elements. They convert to and from vectors and
// support the same arithmetic.
#pragma once
#include "MetalStdlib/Vectors.h"

namespace metal {

#define MNK_HOST_PACKED_MEMBERS(N)                                                          \
  packed_vec() = default;                                                                   \
  MNK_HOST_INLINE packed_vec(vec<T, N> from) {                                              \
    for (int i = 0; i < N; ++i) (*this)[i] = from[i];                                       \
  }                                                                                         \
  template <Scalar S>                                                                       \
  MNK_HOST_INLINE packed_vec(S s) : packed_vec(vec<T, N>(s)) {}                             \
  template <class A, class B, class... R>                                                   \
  MNK_HOST_INLINE packed_vec(A a, B b, R... rest) : packed_vec(vec<T, N>(a, b, rest...)) {} \
  MNK_HOST_INLINE operator vec<T, N>() const {                                              \
    vec<T, N> result;                                                                       \
    for (int i = 0; i < N; ++i) result[i] = (*this)[i];                                     \
    return result;                                                                          \
  }                                                                                         \
  template <class I>                                                                        \
  MNK_HOST_INLINE T& operator[](I i) {                                                      \
    return reinterpret_cast<T*>(this)[i];                                                   \
  }                                                                                         \
  template <class I>                                                                        \
  MNK_HOST_INLINE T operator[](I i) const {                                                 \
    return reinterpret_cast<const T*>(this)[i];                                             \
  }

template <class T>
struct packed_vec<T, 2> {
  T x, y;
  MNK_HOST_PACKED_MEMBERS(2)
};
template <class T>
struct packed_vec<T, 3> {
  T x, y, z;
  MNK_HOST_PACKED_MEMBERS(3)
};
template <class T>
struct packed_vec<T, 4> {
  T x, y, z, w;
  MNK_HOST_PACKED_MEMBERS(4)
};
#undef MNK_HOST_PACKED_MEMBERS

}  // namespace metal
