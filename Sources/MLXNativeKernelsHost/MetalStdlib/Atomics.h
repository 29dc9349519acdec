// Relaxed atomic operations, as in Metal, and the fence that orders them.
#pragma once
#include "Executor/Checks.h"
#include "Integers.h"
#include "Simdgroups.h"

#if MNK_HOST_CHECKED  // out of line, so that checks treat the access as atomic
#define MNK_HOST_ATOMIC inline MNK_HOST_RUNTIME __attribute__((noinline))
#define MNK_HOST_TELL(kind) \
  mnk::host::check::atomicAccess(mnk::host::AccessKind::kind, object, sizeof *object, __builtin_return_address(0))
#else
#define MNK_HOST_ATOMIC MNK_HOST_INLINE
#define MNK_HOST_TELL(kind) static_cast<void>(0)
#endif

namespace metal {

enum memory_order { memory_order_relaxed, memory_order_seq_cst };
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };

template <class T>
struct atomic {
  T value;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<bool> atomic_bool;
typedef atomic<float> atomic_float;

template <class T>
MNK_HOST_ATOMIC T atomic_load_explicit(const volatile atomic<T>* object, memory_order) {
  MNK_HOST_TELL(atomicLoad);
  T result;
  __atomic_load(&object->value, &result, __ATOMIC_RELAXED);
  return result;
}
template <class T>
MNK_HOST_ATOMIC void atomic_store_explicit(volatile atomic<T>* object, identity_t<T> value, memory_order) {
  MNK_HOST_TELL(atomicStore);
  __atomic_store(&object->value, &value, __ATOMIC_RELAXED);
}
template <class T>
MNK_HOST_ATOMIC T atomic_exchange_explicit(volatile atomic<T>* object, identity_t<T> value, memory_order) {
  MNK_HOST_TELL(atomic);
  T result;
  __atomic_exchange(&object->value, &value, &result, __ATOMIC_RELAXED);
  return result;
}
template <class T>
MNK_HOST_ATOMIC bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* object, T* expected,
                                                           identity_t<T> desired, memory_order, memory_order) {
  MNK_HOST_TELL(atomic);
  return __atomic_compare_exchange(&object->value, expected, &desired, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

#define MNK_HOST_FETCH(name, builtin)                                                                                \
  template <class T>                                                                                                 \
  requires(__is_integral(T)) MNK_HOST_ATOMIC T name(volatile atomic<T>* object, identity_t<T> value, memory_order) { \
    MNK_HOST_TELL(atomic);                                                                                           \
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

// Always sequentially consistent: lanes of a threadgroup share a CPU thread.
MNK_HOST_INLINE void atomic_thread_fence(mem_flags, memory_order, thread_scope) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

MNK_HOST_ATOMIC float atomic_fetch_add_explicit(volatile atomic_float* object, float value, memory_order) {
  MNK_HOST_TELL(atomic);
  float before;
  __atomic_load(&object->value, &before, __ATOMIC_RELAXED);
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

#undef MNK_HOST_ATOMIC
#undef MNK_HOST_TELL
