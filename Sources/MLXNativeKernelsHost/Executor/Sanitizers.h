// Informs AddressSanitizer and ThreadSanitizer about lanes and threadgroup memory. Without a sanitizer every function
// here is empty, so the executor is the same in all builds.
//
// MNK_HOST_CHECKED marks a module compiled for checked execution (Watcher.h): the compiler inserts AddressSanitizer's
// callbacks, and the module itself defines them.
#pragma once
#include <stddef.h>

#if !defined(MNK_HOST_CHECKED)
#define MNK_HOST_CHECKED 0
#endif

#if __has_feature(address_sanitizer) && !MNK_HOST_CHECKED
#define MNK_HOST_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define MNK_HOST_ASAN 0
#endif

#if __has_feature(thread_sanitizer)
#define MNK_HOST_TSAN 1
#include <sanitizer/tsan_interface.h>
#else
#define MNK_HOST_TSAN 0
#endif

// Arithmetic in the executor and MetalStdlib may wrap; checked modules check only the kernel's.
#if MNK_HOST_CHECKED
#define MNK_HOST_MAY_WRAP no_sanitize("undefined", "unsigned-integer-overflow")
#else
#define MNK_HOST_MAY_WRAP
#endif

// Executor functions: their memory accesses are not the kernel's.
#define MNK_HOST_RUNTIME \
  __attribute__((no_sanitize("address", "thread"), disable_sanitizer_instrumentation, MNK_HOST_MAY_WRAP))

// Small MetalStdlib functions. nodebug: debuggers and reports show the .metal line instead of MetalStdlib's.
#define MNK_HOST_INLINE inline __attribute__((always_inline, nodebug, MNK_HOST_MAY_WRAP))

// MetalStdlib functions that access the executor's state. Inlined under a sanitizer, their accesses would look like the
// kernel's.
#if MNK_HOST_ASAN || MNK_HOST_TSAN || MNK_HOST_CHECKED
#define MNK_HOST_HOOK inline MNK_HOST_RUNTIME __attribute__((noinline))
#else
#define MNK_HOST_HOOK MNK_HOST_INLINE
#endif

namespace mnk::host::sanitizer {

// ThreadSanitizer sees a thread per lane, and lanes that share a stack would race on it.
inline constexpr bool kOneStackPerLane = MNK_HOST_TSAN;
// How much larger frames are: AddressSanitizer puts a redzone around every variable.
inline constexpr size_t kFrameGrowth = MNK_HOST_ASAN ? 16 : MNK_HOST_TSAN || MNK_HOST_CHECKED ? 4 : 1;

// A stack to return to, as AddressSanitizer describes it. Has no initializers, because the generated constructor would
// be instrumented.
struct StackRange {
  const void* low;
  size_t bytes;
};

// Called before a switch to another stack. A null `saved` means that nothing returns to the current stack.
MNK_HOST_RUNTIME inline void leavingFor([[maybe_unused]] void** saved, [[maybe_unused]] StackRange next) {
#if MNK_HOST_ASAN
  __sanitizer_start_switch_fiber(saved, next.low, next.bytes);
#endif
}

// Called first on the new stack; returns the previous stack.
MNK_HOST_RUNTIME inline StackRange cameFrom([[maybe_unused]] void* saved) {
  StackRange previous{};
#if MNK_HOST_ASAN
  __sanitizer_finish_switch_fiber(saved, &previous.low, &previous.bytes);
#endif
  return previous;
}

MNK_HOST_RUNTIME inline void forbid([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#if MNK_HOST_ASAN
  __asan_poison_memory_region(memory, bytes);
#endif
}

MNK_HOST_RUNTIME inline void allow([[maybe_unused]] const void* memory, [[maybe_unused]] size_t bytes) {
#if MNK_HOST_ASAN
  __asan_unpoison_memory_region(memory, bytes);
#endif
}

MNK_HOST_RUNTIME inline void* currentThread() {
#if MNK_HOST_TSAN
  return __tsan_get_current_fiber();
#else
  return nullptr;
#endif
}

MNK_HOST_RUNTIME inline void* makeThread() {
#if MNK_HOST_TSAN
  return __tsan_create_fiber(0);
#else
  return nullptr;
#endif
}

MNK_HOST_RUNTIME inline void destroyThread([[maybe_unused]] void* thread) {
#if MNK_HOST_TSAN
  __tsan_destroy_fiber(thread);
#endif
}

// Must be inlined: a call would return on another shadow stack than it was made on. A switch orders no memory; only
// barriers do.
MNK_HOST_RUNTIME MNK_HOST_INLINE void becomeThread([[maybe_unused]] void* thread) {
#if MNK_HOST_TSAN
  constexpr unsigned kNoHappensBefore = 1;
  __tsan_switch_to_fiber(thread, kNoHappensBefore);
#endif
}

// Accesses before `publish` on an address are visible after `observe` on it.
MNK_HOST_RUNTIME inline void publish([[maybe_unused]] void* address) {
#if MNK_HOST_TSAN
  __tsan_release(address);
#endif
}

MNK_HOST_RUNTIME inline void observe([[maybe_unused]] void* address) {
#if MNK_HOST_TSAN
  __tsan_acquire(address);
#endif
}

}  // namespace mnk::host::sanitizer
