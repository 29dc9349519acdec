// A fiber switch saves the stack pointer, program counter and frame pointer of one fiber and loads those of another. It
// is inlined and clobbers every other register, so the compiler saves exactly what is live.
#pragma once
#include <stdint.h>

#include "Sanitizers.h"

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
