// Atomic operations, all relaxed, as Metal has them.
#pragma once
#include "Integers.h"

namespace metal {

enum memory_order { memory_order_relaxed };

template <class T>
struct atomic {
  T value;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<bool> atomic_bool;
typedef atomic<float> atomic_float;

template <class T>
MNK_HOST_INLINE T atomic_load_explicit(const volatile atomic<T>* object, memory_order) {
  T result;
  __atomic_load(&object->value, &result, __ATOMIC_RELAXED);
  return result;
}
template <class T>
MNK_HOST_INLINE void atomic_store_explicit(volatile atomic<T>* object, identity_t<T> value, memory_order) {
  __atomic_store(&object->value, &value, __ATOMIC_RELAXED);
}
template <class T>
MNK_HOST_INLINE T atomic_exchange_explicit(volatile atomic<T>* object, identity_t<T> value, memory_order) {
  T result;
  __atomic_exchange(&object->value, &value, &result, __ATOMIC_RELAXED);
  return result;
}
template <class T>
MNK_HOST_INLINE bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* object, T* expected,
                                                           identity_t<T> desired, memory_order, memory_order) {
  return __atomic_compare_exchange(&object->value, expected, &desired, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

#define MNK_HOST_FETCH(name, builtin)                                                                                \
  template <class T>                                                                                                 \
  requires(__is_integral(T)) MNK_HOST_INLINE T name(volatile atomic<T>* object, identity_t<T> value, memory_order) { \
    return builtin(&object->value, value, __ATOMIC_RELAXED);                                                         \
  }
MNK_HOST_FETCH(atomic_fetch_add_explicit, __atomic_fetch_add)
MNK_HOST_FETCH(atomic_fetch_sub_explicit, __atomic_fetch_sub)
MNK_HOST_FETCH(atomic_fetch_max_explicit, __atomic_fetch_max)
MNK_HOST_FETCH(atomic_fetch_min_explicit, __atomic_fetch_min)
MNK_HOST_FETCH(atomic_fetch_and_explicit, __atomic_fetch_and)
MNK_HOST_FETCH(atomic_fetch_or_explicit, __atomic_fetch_or)
MNK_HOST_FETCH(atomic_fetch_xor_explicit, __atomic_fetch_xor)
#undef MNK_HOST_FETCH

MNK_HOST_INLINE float atomic_fetch_add_explicit(volatile atomic_float* object, float value, memory_order) {
  float before = atomic_load_explicit(object, memory_order_relaxed);
  float after = before + value;
  while (!__atomic_compare_exchange(&object->value, &before, &after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    after = before + value;
  }
  return before;
}
MNK_HOST_INLINE float atomic_fetch_sub_explicit(volatile atomic_float* object, float value, memory_order order) {
  return atomic_fetch_add_explicit(object, -value, order);
}

}  // namespace metal
