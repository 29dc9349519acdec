// Barriers, and functions that exchange values between the lanes of a simdgroup or a quad. They order no memory; only
// barriers with memory flags do.
#pragma once
#include "Executor/Worker.h"
#include "MetalStdlib/Common.h"

namespace mnk::host {

// Computed by the last lane to arrive.

struct Nothing {
  template <class T>
  static void run(void*, void*, uint32_t) {}
};

// The value of the first participating lane.
struct First {
  template <class T>
  MNK_HOST_RUNTIME static inline void run(void* box, void* result, uint32_t live) {
    *static_cast<T*>(result) = static_cast<T*>(box)[__builtin_ctz(live)];
  }
};

// A barrier's flags: the memory that every lane orders.
struct Fence {
  template <class T>
  MNK_HOST_RUNTIME static void run([[maybe_unused]] void* box, void*, [[maybe_unused]] uint32_t live) {
#if MNK_HOST_CHECKED
    uint32_t memory = ~0u;
    for (; live; live &= live - 1) memory &= static_cast<T*>(box)[__builtin_ctz(live)];
    check::simdgroupFence(memory);
#endif
  }
};

// A fixed tree over a full simdgroup, so that results do not depend on the order of lanes. Metal does not specify the
// tree, so perturbed modules use a random one for each reduction.
template <class Join>
struct Reduction {
  template <class T>
  MNK_HOST_RUNTIME static inline void run(void* box, void* result, uint32_t live) {
    T* in = static_cast<T*>(box);
#if MNK_HOST_PERTURBED
    T left[32];
    uint32_t count = 0;
    for (; live; live &= live - 1) left[count++] = in[__builtin_ctz(live)];
    while (count > 1) {
      const uint32_t first = drawPerturbation() % count;
      const T taken = left[first];
      left[first] = left[--count];
      T& other = left[drawPerturbation() % count];
      other = Join::join(taken, other);
    }
    *static_cast<T*>(result) = left[0];
    return;
#endif
    if (live == 0xffffffffu) {
      T t[16];
      for (int i = 0; i < 16; ++i) t[i] = Join::join(in[i], in[i + 16]);
      for (int i = 0; i < 8; ++i) t[i] = Join::join(t[i], t[i + 8]);
      for (int i = 0; i < 4; ++i) t[i] = Join::join(t[i], t[i + 4]);
      *static_cast<T*>(result) = Join::join(Join::join(t[0], t[2]), Join::join(t[1], t[3]));
      return;
    }
    T total = in[__builtin_ctz(live)];
    for (live &= live - 1; live; live &= live - 1) total = Join::join(total, in[__builtin_ctz(live)]);
    *static_cast<T*>(result) = total;
  }
};

// Replaces each lane's value with the total of the lanes before it, plus its own if `Inclusive`.
template <class Join, bool Inclusive>
struct Prefix {
  template <class T>
  MNK_HOST_RUNTIME static inline void run(void* box, void*, uint32_t live) {
    T* in = static_cast<T*>(box);
    T total = Join::template neutral<T>();
    for (; live; live &= live - 1) {
      T& place = in[__builtin_ctz(live)];
      const T before = total;
      total = Join::join(total, place);
      place = Inclusive ? total : before;
    }
  }
};

#define MNK_HOST_JOIN_TYPE(Name, expression, zero) \
  struct Name {                                    \
    template <class T>                             \
    static MNK_HOST_INLINE T join(T a, T b) {      \
      return expression;                           \
    }                                              \
    template <class T>                             \
    static MNK_HOST_INLINE T neutral() {           \
      return T(zero);                              \
    }                                              \
  };
MNK_HOST_JOIN_TYPE(Sum, T(a + b), 0)
MNK_HOST_JOIN_TYPE(Product, T(a* b), 1)
MNK_HOST_JOIN_TYPE(Max, metal::max(a, b), 0)
MNK_HOST_JOIN_TYPE(Min, metal::min(a, b), 0)
MNK_HOST_JOIN_TYPE(And, T(a& b), 0)
MNK_HOST_JOIN_TYPE(Or, T(a | b), 0)
MNK_HOST_JOIN_TYPE(Xor, T(a ^ b), 0)
#undef MNK_HOST_JOIN_TYPE

// Run by each lane.

// A value exchanged by a collective is not a memory access of the kernel.
template <class T>
MNK_HOST_HOOK T fetch(const T* from) {
  return *from;
}
template <class Op, class T>
MNK_HOST_INLINE T collect(T x, Site site) {
  T* result;
  meet<T, Op>(x, site, result);
  return fetch(result);
}
template <class Join, class T>
MNK_HOST_INLINE T reduce(T x, Site site) {
  return collect<Reduction<Join>>(x, site);
}
template <class Op, class T>
MNK_HOST_INLINE T exchange(T x, uint32_t source, Site site) {
  T* result;
  T* box = meet<T, Op>(x, site, result);
#if MNK_HOST_CHECKED
  check::shuffleSource(box, source, site);
#endif
  return fetch(box + (source & 31));
}
// A lane without a source has an undefined result: its own value, or, in checked execution, all bits set to expose its
// use.
template <class T>
MNK_HOST_INLINE T exchangeWithin(T x, bool hasSource, uint32_t source, Site site) {
  T* result;
  T* box = meet<T, Nothing>(x, site, result);
#if MNK_HOST_CHECKED
  if (!hasSource || !check::tookPart(box, source)) {
    __builtin_memset(&x, 0xff, sizeof x);
    return x;
  }
#endif
  return hasSource ? fetch(box + source) : x;
}
MNK_HOST_HOOK uint32_t laneIndex() {
  return running.lane->index;
}

}  // namespace mnk::host

namespace metal {

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4 };
MNK_HOST_INLINE constexpr mem_flags operator|(mem_flags a, mem_flags b) {
  return mem_flags(int(a) | int(b));
}

#define MNK_HOST_SITE ::mnk::host::Site site = ::mnk::host::Site::here()

MNK_HOST_INLINE void threadgroup_barrier(mem_flags flags, MNK_HOST_SITE) {
  ::mnk::host::threadgroupBarrier(site, uint(flags));
}

MNK_HOST_INLINE void simdgroup_barrier(mem_flags flags, MNK_HOST_SITE) {
#if MNK_HOST_TSAN
  void* simdgroup = mnk::host::running.lane->simdgroup;
  if (flags != mem_flags::mem_none) mnk::host::sanitizer::publish(simdgroup);
#endif
  mnk::host::collect<mnk::host::Fence>(uint(flags), site);
  asm volatile("" ::: "memory");
#if MNK_HOST_TSAN
  if (flags != mem_flags::mem_none) mnk::host::sanitizer::observe(simdgroup);
#endif
}

#define MNK_HOST_REDUCE(name, Join)                     \
  template <class T>                                    \
  MNK_HOST_INLINE T name(T x, MNK_HOST_SITE) {          \
    return mnk::host::reduce<mnk::host::Join>(x, site); \
  }
MNK_HOST_REDUCE(simd_sum, Sum)
MNK_HOST_REDUCE(simd_product, Product)
MNK_HOST_REDUCE(simd_max, Max)
MNK_HOST_REDUCE(simd_min, Min)
MNK_HOST_REDUCE(simd_and, And)
MNK_HOST_REDUCE(simd_or, Or)
MNK_HOST_REDUCE(simd_xor, Xor)
#undef MNK_HOST_REDUCE

MNK_HOST_INLINE bool simd_any(bool x, MNK_HOST_SITE) {
  return mnk::host::reduce<mnk::host::Or>(uint(x), site) != 0;
}
MNK_HOST_INLINE bool simd_all(bool x, MNK_HOST_SITE) {
  return mnk::host::reduce<mnk::host::And>(uint(x), site) != 0;
}

struct simd_vote {
  using vote_t = ulong;
  ulong bits;
  explicit constexpr operator ulong() const { return bits; }
  constexpr bool any() const { return bits != 0; }
  constexpr bool all() const { return bits == 0xffffffffu; }
};
MNK_HOST_INLINE simd_vote simd_ballot(bool x, MNK_HOST_SITE) {
  return {mnk::host::reduce<mnk::host::Or>(x ? 1u << mnk::host::laneIndex() : 0u, site)};
}
MNK_HOST_INLINE simd_vote simd_active_threads_mask(MNK_HOST_SITE) {
  return simd_ballot(true, site);
}
MNK_HOST_INLINE bool simd_is_first(MNK_HOST_SITE) {
  const uint lane = mnk::host::laneIndex();
  return mnk::host::collect<mnk::host::First>(lane, site) == lane;
}

#define MNK_HOST_SHUFFLE(name, source)                               \
  template <class T>                                                 \
  MNK_HOST_INLINE T name(T x, ushort k, MNK_HOST_SITE) {             \
    [[maybe_unused]] const uint lane = mnk::host::laneIndex();       \
    return mnk::host::exchange<mnk::host::Nothing>(x, source, site); \
  }
#define MNK_HOST_EDGE_SHUFFLE(name, hasSource, source)                 \
  template <class T>                                                   \
  MNK_HOST_INLINE T name(T x, ushort k, MNK_HOST_SITE) {               \
    const uint lane = mnk::host::laneIndex();                          \
    return mnk::host::exchangeWithin(x, hasSource, (source)&31, site); \
  }
MNK_HOST_SHUFFLE(simd_shuffle, k)
MNK_HOST_SHUFFLE(simd_broadcast, k)
MNK_HOST_SHUFFLE(simd_shuffle_xor, lane ^ k)
MNK_HOST_EDGE_SHUFFLE(simd_shuffle_down, (lane + k < 32), lane + k)
MNK_HOST_EDGE_SHUFFLE(simd_shuffle_up, (lane >= k), lane - k)
MNK_HOST_SHUFFLE(simd_shuffle_rotate_down, (lane + k) & 31)
MNK_HOST_SHUFFLE(simd_shuffle_rotate_up, (lane - k) & 31)
// A source outside the quad becomes one outside the simdgroup, which checked execution reports.
MNK_HOST_SHUFFLE(quad_shuffle, k < 4 ? (lane & ~3u) | k : lane + 32)
MNK_HOST_SHUFFLE(quad_broadcast, k < 4 ? (lane & ~3u) | k : lane + 32)
MNK_HOST_SHUFFLE(quad_shuffle_xor, k < 4 ? lane ^ k : lane + 32)
MNK_HOST_EDGE_SHUFFLE(quad_shuffle_down, ((lane & 3) + k < 4), lane + k)
MNK_HOST_EDGE_SHUFFLE(quad_shuffle_up, ((lane & 3) >= k), lane - k)
#undef MNK_HOST_SHUFFLE
#undef MNK_HOST_EDGE_SHUFFLE

template <class T>
MNK_HOST_INLINE T simd_broadcast_first(T x, MNK_HOST_SITE) {
  return mnk::host::collect<mnk::host::First>(x, site);
}

#define MNK_HOST_PREFIX(name, Join, inclusive)                       \
  template <class T>                                                 \
  MNK_HOST_INLINE T name(T x, MNK_HOST_SITE) {                       \
    using Op = mnk::host::Prefix<mnk::host::Join, inclusive>;        \
    return mnk::host::exchange<Op>(x, mnk::host::laneIndex(), site); \
  }
MNK_HOST_PREFIX(simd_prefix_inclusive_sum, Sum, true)
MNK_HOST_PREFIX(simd_prefix_exclusive_sum, Sum, false)
MNK_HOST_PREFIX(simd_prefix_inclusive_product, Product, true)
MNK_HOST_PREFIX(simd_prefix_exclusive_product, Product, false)
#undef MNK_HOST_PREFIX

#define MNK_HOST_QUAD(name, expression)                                        \
  template <class T>                                                           \
  MNK_HOST_INLINE T name(T a, MNK_HOST_SITE) {                                 \
    for (ushort distance = 1; distance < 4; distance = ushort(distance * 2)) { \
      const T b = quad_shuffle_xor(a, distance, site);                         \
      a = expression;                                                          \
    }                                                                          \
    return a;                                                                  \
  }
MNK_HOST_QUAD(quad_sum, T(a + b))
MNK_HOST_QUAD(quad_product, T(a* b))
MNK_HOST_QUAD(quad_max, max(a, b))
MNK_HOST_QUAD(quad_min, min(a, b))
MNK_HOST_QUAD(quad_and, T(a& b))
MNK_HOST_QUAD(quad_or, T(a | b))
MNK_HOST_QUAD(quad_xor, T(a ^ b))
#undef MNK_HOST_QUAD
#undef MNK_HOST_SITE

}  // namespace metal
