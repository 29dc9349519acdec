// objc_msgSend and its variants: save every register that can hold an argument, look up the method's function, and jump
// to it with registers and stack restored.

#if defined(__x86_64__)

// For a struct returned in memory, the first register has its address, and the receiver is in the next one.
#define MESSAGE_SEND(NAME, RECEIVER, SELECTOR, STRUCT) \
  asm(".text\n"                                        \
      ".globl " NAME                                   \
      "\n"                                             \
      ".type " NAME ", @function\n" NAME               \
      ":\n"                                            \
      ".cfi_startproc\n"                               \
      "push %rbp\n"                                    \
      ".cfi_def_cfa_offset 16\n"                       \
      ".cfi_offset %rbp, -16\n"                        \
      "mov %rsp, %rbp\n"                               \
      ".cfi_def_cfa_register %rbp\n"                   \
      "sub $192, %rsp\n"                               \
      "mov %rdi, 0(%rsp)\n"                            \
      "mov %rsi, 8(%rsp)\n"                            \
      "mov %rdx, 16(%rsp)\n"                           \
      "mov %rcx, 24(%rsp)\n"                           \
      "mov %r8, 32(%rsp)\n"                            \
      "mov %r9, 40(%rsp)\n"                            \
      "mov %rax, 48(%rsp)\n"                           \
      "movups %xmm0, 64(%rsp)\n"                       \
      "movups %xmm1, 80(%rsp)\n"                       \
      "movups %xmm2, 96(%rsp)\n"                       \
      "movups %xmm3, 112(%rsp)\n"                      \
      "movups %xmm4, 128(%rsp)\n"                      \
      "movups %xmm5, 144(%rsp)\n"                      \
      "movups %xmm6, 160(%rsp)\n"                      \
      "movups %xmm7, 176(%rsp)\n"                      \
      "mov " RECEIVER                                  \
      "(%rsp), %rdi\n"                                 \
      "mov " SELECTOR                                  \
      "(%rsp), %rsi\n"                                 \
      "mov $" STRUCT                                   \
      ", %edx\n"                                       \
      "call softmetal_lookup\n"                        \
      "mov %rax, %r11\n"                               \
      "movups 64(%rsp), %xmm0\n"                       \
      "movups 80(%rsp), %xmm1\n"                       \
      "movups 96(%rsp), %xmm2\n"                       \
      "movups 112(%rsp), %xmm3\n"                      \
      "movups 128(%rsp), %xmm4\n"                      \
      "movups 144(%rsp), %xmm5\n"                      \
      "movups 160(%rsp), %xmm6\n"                      \
      "movups 176(%rsp), %xmm7\n"                      \
      "mov 0(%rsp), %rdi\n"                            \
      "mov 8(%rsp), %rsi\n"                            \
      "mov 16(%rsp), %rdx\n"                           \
      "mov 24(%rsp), %rcx\n"                           \
      "mov 32(%rsp), %r8\n"                            \
      "mov 40(%rsp), %r9\n"                            \
      "mov 48(%rsp), %rax\n"                           \
      "leave\n"                                        \
      ".cfi_def_cfa %rsp, 8\n"                         \
      ".cfi_restore %rbp\n"                            \
      "jmp *%r11\n"                                    \
      ".cfi_endproc\n"                                 \
      ".size " NAME ", . - " NAME "\n")

MESSAGE_SEND("objc_msgSend", "0", "8", "0");
MESSAGE_SEND("objc_msgSend_fpret", "0", "8", "0");
MESSAGE_SEND("objc_msgSend_stret", "8", "16", "1");

asm(".globl softmetal_zero\n"
    ".hidden softmetal_zero\n"
    ".type softmetal_zero, @function\n"
    "softmetal_zero:\n"
    ".cfi_startproc\n"
    "xor %eax, %eax\n"
    "xor %edx, %edx\n"
    "xorps %xmm0, %xmm0\n"
    "xorps %xmm1, %xmm1\n"
    "ret\n"
    ".cfi_endproc\n"
    ".globl softmetal_zero_struct\n"
    ".hidden softmetal_zero_struct\n"
    ".type softmetal_zero_struct, @function\n"
    "softmetal_zero_struct:\n"
    ".cfi_startproc\n"
    "mov %rdi, %rax\n"
    "ret\n"
    ".cfi_endproc\n");

#elif defined(__aarch64__)

asm(".text\n"
    ".globl objc_msgSend\n"
    ".type objc_msgSend, %function\n"
    "objc_msgSend:\n"
    ".cfi_startproc\n"
    "stp x29, x30, [sp, #-224]!\n"
    ".cfi_def_cfa_offset 224\n"
    ".cfi_offset x29, -224\n"
    ".cfi_offset x30, -216\n"
    "mov x29, sp\n"
    "stp x0, x1, [sp, #16]\n"
    "stp x2, x3, [sp, #32]\n"
    "stp x4, x5, [sp, #48]\n"
    "stp x6, x7, [sp, #64]\n"
    "str x8, [sp, #80]\n"
    "stp q0, q1, [sp, #96]\n"
    "stp q2, q3, [sp, #128]\n"
    "stp q4, q5, [sp, #160]\n"
    "stp q6, q7, [sp, #192]\n"
    "mov w2, #0\n"
    "bl softmetal_lookup\n"
    "mov x16, x0\n"
    "ldp x0, x1, [sp, #16]\n"
    "ldp x2, x3, [sp, #32]\n"
    "ldp x4, x5, [sp, #48]\n"
    "ldp x6, x7, [sp, #64]\n"
    "ldr x8, [sp, #80]\n"
    "ldp q0, q1, [sp, #96]\n"
    "ldp q2, q3, [sp, #128]\n"
    "ldp q4, q5, [sp, #160]\n"
    "ldp q6, q7, [sp, #192]\n"
    "ldp x29, x30, [sp], #224\n"
    ".cfi_def_cfa_offset 0\n"
    ".cfi_restore x29\n"
    ".cfi_restore x30\n"
    "br x16\n"
    ".cfi_endproc\n"
    ".size objc_msgSend, . - objc_msgSend\n"
    ".globl softmetal_zero\n"
    ".hidden softmetal_zero\n"
    ".type softmetal_zero, %function\n"
    "softmetal_zero:\n"
    ".cfi_startproc\n"
    "mov x0, #0\n"
    "mov x1, #0\n"
    "movi v0.16b, #0\n"
    "movi v1.16b, #0\n"
    "movi v2.16b, #0\n"
    "movi v3.16b, #0\n"
    "ret\n"
    ".cfi_endproc\n"
    ".globl softmetal_zero_struct\n"
    ".hidden softmetal_zero_struct\n"
    ".set softmetal_zero_struct, softmetal_zero\n");

#else
#error "SoftMetal knows x86-64 and arm64"
#endif
