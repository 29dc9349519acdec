// How the executor switches between stacks, and what sanitizers must know of it.
#pragma once
#include <stddef.h>
#include <stdint.h>

// Informs AddressSanitizer and ThreadSanitizer about lanes and threadgroup memory. Without a sanitizer every function
// here is empty, so the executor is the same in all builds.
//
// MNK_HOST_CHECKED marks a module compiled for checked execution (Module.h): the compiler inserts AddressSanitizer's
// callbacks, and the module itself defines them.
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

namespace mnk::host {

struct FiberState {
  void* stackPointer;
  void* programCounter;
  void* framePointer;
};

#if defined(__x86_64__)

#define MNK_HOST_SWITCH(from, to)                                                                                     \
  do {                                                                                                                \
    void* from_ = (from);                                                                                             \
    void* to_ = (to);                                                                                                 \
    asm volatile(                                                                                                     \
        "leaq 1f(%%rip), %%rdx\n"                                                                                     \
        "movq %%rsp, (%%rdi)\n"                                                                                       \
        "movq %%rdx, 8(%%rdi)\n"                                                                                      \
        "movq %%rbp, 16(%%rdi)\n"                                                                                     \
        "movq (%%rsi), %%rsp\n"                                                                                       \
        "movq 16(%%rsi), %%rbp\n"                                                                                     \
        "jmpq *8(%%rsi)\n"                                                                                            \
        "1:\n"                                                                                                        \
        : "+D"(from_), "+S"(to_)                                                                                      \
        :                                                                                                             \
        : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0",   \
          "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
          "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", \
          "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7");            \
  } while (0)

#elif defined(__aarch64__)

#if defined(__APPLE__)
#define MNK_HOST_X18  // reserved by the platform
#else
#define MNK_HOST_X18 "x18",
#endif

#define MNK_HOST_SWITCH(from, to)                                                                                      \
  do {                                                                                                                 \
    register void* from_ asm("x0") = (from);                                                                           \
    register void* to_ asm("x1") = (to);                                                                               \
    asm volatile(                                                                                                      \
        "adr x2, 1f\n"                                                                                                 \
        "mov x3, sp\n"                                                                                                 \
        "stp x3, x2, [x0]\n"                                                                                           \
        "str x29, [x0, #16]\n"                                                                                         \
        "ldp x3, x2, [x1]\n"                                                                                           \
        "ldr x29, [x1, #16]\n"                                                                                         \
        "mov sp, x3\n"                                                                                                 \
        "br x2\n"                                                                                                      \
        "1:\n"                                                                                                         \
        : "+r"(from_), "+r"(to_)                                                                                       \
        :                                                                                                              \
        : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",      \
          MNK_HOST_X18 "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "memory", "cc",    \
          "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", \
          "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");    \
  } while (0)

#else
#error "The Host device has no fiber switch for this processor."
#endif

// A fiber that starts in `main`, which must never return. The stack looks as if `main` had been called: x86-64 stores
// the return address below an aligned top, and a null frame pointer ends stack walks.
MNK_HOST_RUNTIME inline FiberState newFiber(void* stackTop, void (*main)()) {
  uintptr_t top = reinterpret_cast<uintptr_t>(stackTop) & ~uintptr_t(63);
#if defined(__x86_64__)
  top -= sizeof(void*);
  *reinterpret_cast<void**>(top) = nullptr;
#endif
  return {reinterpret_cast<void*>(top), reinterpret_cast<void*>(main), nullptr};
}

}  // namespace mnk::host
