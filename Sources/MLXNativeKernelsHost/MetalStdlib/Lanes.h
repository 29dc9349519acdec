// The functions of Shaders/Common/Lanes.h, each with one synchronization of the lanes and with full-width CPU vectors.
#pragma once
#include "MetalStdlib/Simdgroups.h"

#define MNK_HAS_WIDE_VECTORS 1
// Checked execution uses the source's shuffle loops, which show which lanes took part.
#define MNK_BATCHED_SHUFFLES (!MNK_HOST_CHECKED)
// Users' kernels do not know these names.
#define MNK_PREFETCH(address) __builtin_prefetch(address)
#define MNK_GATHER_SHARES(x, n, lanes) ::mnk::host::gatherShares(x, n, lanes)
#define MNK_USE_WIDE_VECTORS    \
  using ::mnk::host::addFields; \
  using ::mnk::host::floats;
#define MNK_USE_BATCHED_SHUFFLES  \
  using ::mnk::host::exchangeXor; \
  using ::mnk::host::gatherLanes; \
  using ::mnk::host::largestOver; \
  using ::mnk::host::sumOver;

namespace mnk::host {

// An array on a lane's stack. The last lane to arrive moves the elements of all lanes.
struct LaneArray {
  float* x;
  uint32_t count, distance;  // or lanes that share it
};

struct SwapArrays {
  template <class T>
  MNK_HOST_RUNTIME static inline void run(void* box, void*, uint32_t live) {
    const T* in = static_cast<const T*>(box);
    for (uint32_t left = live; left; left &= left - 1) {
      const uint32_t lane = uint32_t(__builtin_ctz(left)), other = lane ^ in[lane].distance;
      if (other <= lane || other > 31 || !(live >> other & 1)) continue;
      float *a = in[lane].x, *b = in[other].x;
      for (uint32_t i = 0; i < in[lane].count; ++i) {
        const float kept = a[i];
        a[i] = b[i];
        b[i] = kept;
      }
    }
  }
};

struct ShareArrays {
  template <class T>
  MNK_HOST_RUNTIME static inline void run(void* box, void*, uint32_t live) {
    const T* in = static_cast<const T*>(box);
    const uint32_t n = in[__builtin_ctz(live)].count, lanes = in[__builtin_ctz(live)].distance;
    for (uint32_t first = 0; first < 32; first += lanes) {
      float all[kMaxElements];
      for (uint32_t i = 0; i < lanes && n * lanes <= kMaxElements; ++i) {
        if (live >> (first + i) & 1) __builtin_memcpy(all + i * n, in[first + i].x, n * sizeof(float));
      }
      for (uint32_t i = 0; i < lanes && n * lanes <= kMaxElements; ++i) {
        if (live >> (first + i) & 1) __builtin_memcpy(in[first + i].x, all, n * lanes * sizeof(float));
      }
    }
  }
  static constexpr uint32_t kMaxElements = 256;  // elements of all lanes
};

// A number, and the lane distances, from `first` to below `end`, over which it is combined with others.
struct LaneNumber {
  float x;
  uint16_t first, end;
};

template <class Join>
struct Butterfly {
  template <class T>
  MNK_HOST_RUNTIME static inline void run(void* box, void*, uint32_t live) {
    T* in = static_cast<T*>(box);
    const T any = in[__builtin_ctz(live)];
    float x[32];
    for (int i = 0; i < 32; ++i) x[i] = in[i].x;
    if (any.first <= 1 && any.end > 1) step<1>(x);
    if (any.first <= 2 && any.end > 2) step<2>(x);
    if (any.first <= 4 && any.end > 4) step<4>(x);
    if (any.first <= 8 && any.end > 8) step<8>(x);
    if (any.first <= 16 && any.end > 16) step<16>(x);
    for (int i = 0; i < 32; ++i) in[i].x = x[i];
  }

 private:
  template <int Distance>
  MNK_HOST_RUNTIME static MNK_HOST_INLINE void step(float* x) {
    float joined[32];
    for (int i = 0; i < 32; ++i) joined[i] = Join::join(x[i], x[i ^ Distance]);
    __builtin_memcpy(x, joined, sizeof joined);
  }
};

template <class Join>
MNK_HOST_INLINE float joined(float x, uint16_t first, uint16_t end, Site site) {
  if (first >= end) return x;
  LaneNumber* unused;
  const LaneNumber* box = meet<LaneNumber, Butterfly<Join>>({x, first, end}, site, unused);
  return fetch(box + laneIndex()).x;
}

// `N` floats, computed in as few instructions as possible.
template <int N>
struct WideFloats {
  metal::raw<float, N> v;
  WideFloats() = default;
  MNK_HOST_INLINE explicit WideFloats(float x) : v(x) {}
  template <class I>
  MNK_HOST_INLINE float& operator[](I i) {
    return reinterpret_cast<float*>(&v)[i];
  }
  MNK_HOST_INLINE WideFloats& operator*=(float x) {
    v *= x;
    return *this;
  }
};

template <int N>
struct FloatsOf {
  using type = WideFloats<N>;
};
template <>
struct FloatsOf<4> {
  using type = metal::vec<float, 4>;
};

MNK_HOST_INLINE float total(float x) {
  return x;
}
template <class V>
MNK_HOST_INLINE float total(const V& x) {
  return total(x.lo + x.hi);
}

template <int N>
using floats = typename FloatsOf<N>::type;

// Fused only if the processor supports it: elsewhere a function would be called for each element.
template <int N>
MNK_HOST_INLINE WideFloats<N> fma(const WideFloats<N>& a, const WideFloats<N>& b, const WideFloats<N>& c) {
  WideFloats<N> result;
  result.v = a.v * b.v + c.v;
  return result;
}
template <int N>
MNK_HOST_INLINE WideFloats<N> productsOf(const WideFloats<N>& a, const WideFloats<N>& b) {
  WideFloats<N> result;
  result.v = a.v * b.v;
  return result;
}
template <int N>
MNK_HOST_INLINE WideFloats<N> addedProducts(const WideFloats<N>& sum, const WideFloats<N>& a, const WideFloats<N>& b) {
  return fma(a, b, sum);
}
template <int N>
MNK_HOST_INLINE void setHalves(WideFloats<N>& x, const uint32_t* words) {
  metal::raw<metal::half, N> halves;
  __builtin_memcpy(&halves, words, sizeof halves);
  metal::widenHalves<N>(x.v, halves);
}
template <int N>
MNK_HOST_INLINE float totalOf(const WideFloats<N>& sum) {
  return total(sum.v);
}

template <uint32_t N, uint32_t Width>
MNK_HOST_INLINE void addFieldsOf(uint32_t* codes, const uint32_t* words, uint32_t first, uint32_t shift) {
  constexpr uint32_t kInWord = 32 / Width < N ? 32 / Width : N;
  for (uint32_t i = 0; i < N / kInWord; ++i) {
    const uint32_t word = words[first * Width / 32 + i] >> first * Width % 32;
    for (uint32_t j = 0; j < kInWord; ++j) codes[i * kInWord + j] |= (word >> j * Width & ((1u << Width) - 1)) << shift;
  }
}
// The width is a constant in each loop. `first` is a multiple of N.
template <uint32_t N>
MNK_HOST_INLINE void addFields(uint32_t* codes, const uint32_t* words, uint32_t first, uint32_t width, uint32_t shift) {
  if (width == 8) return addFieldsOf<N, 8>(codes, words, first, shift);
  if (width == 4) return addFieldsOf<N, 4>(codes, words, first, shift);
  if (width == 2) return addFieldsOf<N, 2>(codes, words, first, shift);
  addFieldsOf<N, 1>(codes, words, first, shift);
}

#define MNK_HOST_SITE Site site = Site::here()

// Concatenates the n numbers of each of `lanes` neighbors.
MNK_HOST_INLINE void gatherShares(float* x, uint16_t n, uint16_t lanes, MNK_HOST_SITE) {
  if (lanes == 1) return;
#if MNK_BATCHED_SHUFFLES
  LaneArray* unused;
  meet<LaneArray, ShareArrays>({x, n, lanes}, site, unused);
#else
  const uint32_t first = laneIndex() / lanes * lanes;
  for (uint32_t j = lanes; j-- > 0;) {
    for (uint32_t i = 0; i < n; ++i) x[j * n + i] = exchange<Nothing>(x[i], first + j, site);
  }
#endif
}

#if MNK_BATCHED_SHUFFLES

MNK_HOST_INLINE void exchangeXor(float* x, uint16_t n, uint16_t distance, MNK_HOST_SITE) {
  LaneArray* unused;
  meet<LaneArray, SwapArrays>({x, n, distance}, site, unused);
}
template <uint16_t N>
MNK_HOST_INLINE void gatherLanes(float* into, float x, uint16_t first, uint16_t stride, MNK_HOST_SITE) {
  float* unused;
  const float* box = meet<float, Nothing>(x, site, unused);
  for (uint16_t i = 0; i < N; ++i) into[i] = fetch(box + ((first + i * stride) & 31));
}
MNK_HOST_INLINE float largestOver(float x, uint16_t first, uint16_t end, MNK_HOST_SITE) {
  return joined<Max>(x, first, end, site);
}
MNK_HOST_INLINE float sumOver(float x, uint16_t first, uint16_t end, MNK_HOST_SITE) {
  return joined<Sum>(x, first, end, site);
}

#undef MNK_HOST_SITE

#endif

}  // namespace mnk::host
