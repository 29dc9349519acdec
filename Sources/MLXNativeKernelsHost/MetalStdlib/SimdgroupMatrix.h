// simdgroup_matrix: an 8 x 8 matrix distributed over the lanes of a simdgroup, two adjacent elements of a row in each.
//
// Metal does not specify which lane holds which elements. This uses the layout of Apple's GPUs; perturbed modules use
// another, to expose kernels that rely on it. Sums are computed in f32 and added to the accumulator; Metal does not
// specify their order, and perturbed modules use a random one.
#pragma once
#include "MetalStdlib/Simdgroups.h"

namespace mnk::host {

struct MatrixPlace {
  uint32_t row, column;  // of the lane's first element
};

MNK_HOST_INLINE constexpr MatrixPlace matrixPlace(uint32_t lane) {
#if MNK_HOST_PERTURBED
  return {lane >> 2, (lane & 3) << 1};
#else
  return {(lane >> 1 & 3) | (lane >> 2 & 4), (lane & 1) << 1 | (lane >> 1 & 4)};
#endif
}

// A lane's operands of a product.
template <class T>
struct MatrixFactors {
  T a[2], b[2];
};

struct MatrixSums {
  float of[2];
};

// A product without all lanes is undefined: NaN exposes its use.
template <class F>
MNK_HOST_RUNTIME inline void spoilUnlessComplete(F* box, uint32_t live) {
  if (live != ~0u) __builtin_memset(static_cast<void*>(box), 0xff, 32 * sizeof(F));
}

#if MNK_HOST_PERTURBED

template <class T>
using MatrixDeposit = float;

struct MatrixProduct {
  template <class F>
  MNK_HOST_RUNTIME static void run(void* box, void*, uint32_t live) {
    spoilUnlessComplete(static_cast<F*>(box), live);
  }
};

// Computes the lane's elements. One random draw selects the order of terms, a chain or a tree, and the position of the
// accumulator.
MNK_HOST_HOOK MatrixSums accumulated(const MatrixFactors<float>* box, MatrixSums onto) {
  const MatrixPlace place = matrixPlace(running.lane->index);
  const uint32_t drawn = drawPerturbation();
  for (uint32_t e = 0; e < 2; ++e) {
    float terms[8];
    for (uint32_t i = 0; i < 8; ++i) {
      const uint32_t k = (i * (drawn >> 5 | 1) ^ drawn >> 2) & 7;
      const float a = box[place.row << 2 | k >> 1].a[k & 1];
      terms[i] = a * box[k << 2 | place.column >> 1].b[e];
    }
    const bool isLast = drawn & 1;
    float sum = isLast ? 0.0f : onto.of[e];
    if (drawn & 2) {
      for (uint32_t distance = 4; distance > 0; distance /= 2) {
        for (uint32_t i = 0; i < distance; ++i) terms[i] += terms[i + distance];
      }
      sum += terms[0];
    } else {
      for (const float term : terms) sum += term;
    }
    onto.of[e] = isLast ? sum + onto.of[e] : sum;
  }
  return onto;
}

#else

template <class T>
using MatrixDeposit = T;

using MatrixRow = metal::raw<float, 8>;

// Exact. Takes references, because functions cannot pass such vectors without AVX.
template <int Level, class T>
MNK_HOST_INLINE void widen(MatrixRow& into, const metal::raw<T, 8>& row) {
  using Bits = metal::raw<uint32_t, 8>;
  if constexpr (metal::is_same_v<T, metal::bfloat>) {
    into = __builtin_bit_cast(MatrixRow, __builtin_convertvector(row, Bits) << 16);
  } else if constexpr (metal::is_same_v<T, metal::half>) {
    metal::widenHalves<8, Level>(into, row);
  } else {
    into = __builtin_convertvector(row, MatrixRow);
  }
}

// The last lane to arrive computes the product for all. One function per instruction set, because a kernel may contain
// hundreds of products.
MNK_HOST_TARGET_BEGIN
template <int Level>
struct MatrixProductFor {
  template <class F>
  MNK_HOST_RUNTIME static __attribute__((noinline)) void run(void* box, void*, uint32_t live) {
    using T = decltype(elementOf(*static_cast<F*>(box)));
    using Pairs = metal::raw<T, 8>;  // of two neighbors: a, a, b, b, a, a, b, b
    F* in = static_cast<F*>(box);
    spoilUnlessComplete(in, live);
    MatrixRow b[8];
    float a[8][8];
#pragma clang loop unroll(full)
    for (uint32_t row = 0; row < 8; ++row) {
      const F* left = in + firstLaneOf(row);
      Pairs pairs[2];
      __builtin_memcpy(&pairs[0], left, sizeof(Pairs));
      __builtin_memcpy(&pairs[1], left + kRightHalf, sizeof(Pairs));
      MatrixRow all;
      widen<Level, T>(all, __builtin_shufflevector(pairs[0], pairs[1], 0, 1, 4, 5, 8, 9, 12, 13));
      widen<Level, T>(b[row], __builtin_shufflevector(pairs[0], pairs[1], 2, 3, 6, 7, 10, 11, 14, 15));
      __builtin_memcpy(a[row], &all, sizeof all);
    }
    MatrixSums* out = static_cast<MatrixSums*>(box);
#pragma clang loop unroll(full)
    for (uint32_t row = 0; row < 8; ++row) {
      MatrixRow sums = a[row][0] * b[0];
      for (uint32_t k = 1; k < 8; ++k) sums += a[row][k] * b[k];
      __builtin_memcpy(out + firstLaneOf(row), &sums, sizeof sums / 2);
      const auto right = __builtin_shufflevector(sums, sums, 4, 5, 6, 7);
      __builtin_memcpy(out + firstLaneOf(row) + kRightHalf, &right, sizeof right);
    }
  }

 private:
  // The lanes of a row: two hold its left half and two its right half.
  static constexpr uint32_t kRightHalf = 8;
  static MNK_HOST_INLINE constexpr uint32_t firstLaneOf(uint32_t row) {
    return (row & 3) << 1 | (row & 4) << 2;
  }
  template <class T>
  static T elementOf(MatrixFactors<T>);
};
MNK_HOST_TARGET_END
using MatrixProduct = MatrixProductFor<MNK_HOST_LEVEL>;

template <class T>
MNK_HOST_HOOK MatrixSums accumulated(const MatrixFactors<T>* box, MatrixSums onto) {
  const MatrixSums& sums = reinterpret_cast<const MatrixSums*>(box)[running.lane->index];
  return {{onto.of[0] + sums.of[0], onto.of[1] + sums.of[1]}};
}

#endif

// A matrix in memory, the same for all lanes.
struct MatrixMemory {
  const void* address;
  uint64_t elementsPerRow;
};

#if MNK_HOST_CHECKED

MNK_HOST_RUNTIME inline __attribute__((noinline)) void checkEveryLane(const void* mailbox, Site site) {
  const Simdgroup* group = running.lane->simdgroup;
  const uint32_t absent = ~group->tookPart[mailbox == group->box[0] ? 0 : 1];
  if (absent == 0) return;
  check::mistake(site.file, site.line, "lane %d does not take part in a function of matrices, which needs all 32",
                 __builtin_ctz(absent));
}

MNK_HOST_RUNTIME inline __attribute__((noinline)) void checkMemory(MatrixMemory memory, Site site) {
  MatrixMemory* first;
  checkEveryLane(meet<MatrixMemory, First>(memory, site, first), site);
  if (first->address == memory.address && first->elementsPerRow == memory.elementsPerRow) return;
  check::mistake(site.file, site.line, "lanes give different addresses or rows of one matrix");
}

#else

MNK_HOST_INLINE void checkEveryLane(const void*, Site) {}
MNK_HOST_INLINE void checkMemory(MatrixMemory, Site) {}

#endif

template <class T>
MNK_HOST_INLINE MatrixSums multiplied(MatrixFactors<T> factors, MatrixSums onto, Site site) {
  MatrixFactors<T>* unused;
  const MatrixFactors<T>* box = meet<MatrixFactors<T>, MatrixProduct>(factors, site, unused);
  checkEveryLane(box, site);
  return accumulated(box, onto);
}

}  // namespace mnk::host

namespace metal {

template <class T, int Columns, int Rows>
struct simdgroup_matrix {
  static_assert(FloatScalar<T> && Columns == 8 && Rows == 8, "a simdgroup's matrix is 8 x 8 of half, bfloat or float");
  simdgroup_matrix() = default;
  MNK_HOST_INLINE vec<T, 2>& thread_elements() { return elements; }

 private:
  vec<T, 2> elements;
};
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;

template <class T, int Columns, int Rows>
MNK_HOST_INLINE simdgroup_matrix<T, Columns, Rows> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, Columns, Rows> result;
  result.thread_elements() = vec<T, 2>(value);
  return result;
}

#define MNK_HOST_SITE ::mnk::host::Site site = ::mnk::host::Site::here()

// Every lane accesses its own two elements.
template <class T>
MNK_HOST_INLINE void simdgroup_load(simdgroup_matrix<T, 8, 8>& into, identity_t<const T*> from,
                                    ulong elements_per_row = 8, MNK_HOST_SITE) {
  mnk::host::checkMemory({from, elements_per_row}, site);
  const mnk::host::MatrixPlace place = mnk::host::matrixPlace(mnk::host::laneIndex());
  from += place.row * elements_per_row + place.column;
  into.thread_elements()[0] = from[0];
  into.thread_elements()[1] = from[1];
}
template <class T>
MNK_HOST_INLINE void simdgroup_store(simdgroup_matrix<T, 8, 8> from, identity_t<T*> into, ulong elements_per_row = 8,
                                     MNK_HOST_SITE) {
  mnk::host::checkMemory({into, elements_per_row}, site);
  const mnk::host::MatrixPlace place = mnk::host::matrixPlace(mnk::host::laneIndex());
  into += place.row * elements_per_row + place.column;
  into[0] = from.thread_elements()[0];
  into[1] = from.thread_elements()[1];
}

// a and b have the result's type, or a smaller type if the result is float.
template <class D, class T>
requires(is_same_v<D, T> || is_same_v<D, float>) MNK_HOST_INLINE
    void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<T, 8, 8> a,
                                       simdgroup_matrix<T, 8, 8> b, simdgroup_matrix<D, 8, 8> c, MNK_HOST_SITE) {
  using E = mnk::host::MatrixDeposit<T>;
  const vec<T, 2> x = a.thread_elements(), y = b.thread_elements();
  const vec<D, 2> z = c.thread_elements();
  const mnk::host::MatrixSums sums = mnk::host::multiplied<E>({{x[0], x[1]}, {y[0], y[1]}}, {{z[0], z[1]}}, site);
  d.thread_elements()[0] = D(sums.of[0]);
  d.thread_elements()[1] = D(sums.of[1]);
}
template <class D, class T>
requires(is_same_v<D, T> || is_same_v<D, float>) MNK_HOST_INLINE
    void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<T, 8, 8> a, simdgroup_matrix<T, 8, 8> b,
                            MNK_HOST_SITE) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<D, 8, 8>(D(0.0f)), site);
}
#undef MNK_HOST_SITE

}  // namespace metal
