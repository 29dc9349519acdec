// simdgroup_matrix of Metal Shading Language for the strict compile. Its functions are in functions.tsv.
#pragma once
#include "Vectors.h"

namespace metal {

// A lane's elements. Metal has more members, which differ between versions.
template <typename T>
struct ThreadElements {
  T& operator[](int);
};

template <typename T, int columns, int rows>
struct simdgroup_matrix {
  static_assert(
      FloatingRank<T>::value > 0 && columns == 8 && rows == 8, "a simdgroup_matrix is 8 x 8 of half, bfloat or float");
  ThreadElements<T>& thread_elements();

 private:
  T elements[2];
};

typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;

}  // namespace metal
