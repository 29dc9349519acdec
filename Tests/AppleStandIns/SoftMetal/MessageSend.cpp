// objc_msgSend and its variants: save every register that can hold an argument, look up the method's function, and jump
// to it with registers and stack restored.

#if defined(__x86_64__)

// For a struct returned in memory, the first register has its address, and the receiver is in the next one.
asm(R"(
.macro messageSend name, receiver, selector, isStruct
.globl \name
.type \name, @function
\name:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  mov %rsp, %rbp
  .cfi_def_cfa_register %rbp
  sub $192, %rsp
  mov %rdi, 0(%rsp)
  mov %rsi, 8(%rsp)
  mov %rdx, 16(%rsp)
  mov %rcx, 24(%rsp)
  mov %r8, 32(%rsp)
  mov %r9, 40(%rsp)
  mov %rax, 48(%rsp)
  .irp i, 0, 1, 2, 3, 4, 5, 6, 7
  movups %xmm\i, 64+16*\i(%rsp)
  .endr
  mov \receiver(%rsp), %rdi
  mov \selector(%rsp), %rsi
  mov $\isStruct, %edx
  call softmetal_lookup
  mov %rax, %r11
  .irp i, 0, 1, 2, 3, 4, 5, 6, 7
  movups 64+16*\i(%rsp), %xmm\i
  .endr
  mov 0(%rsp), %rdi
  mov 8(%rsp), %rsi
  mov 16(%rsp), %rdx
  mov 24(%rsp), %rcx
  mov 32(%rsp), %r8
  mov 40(%rsp), %r9
  mov 48(%rsp), %rax
  leave
  .cfi_def_cfa %rsp, 8
  .cfi_restore %rbp
  jmp *%r11
  .cfi_endproc
  .size \name, . - \name
.endm
.text
messageSend objc_msgSend, 0, 8, 0
messageSend objc_msgSend_fpret, 0, 8, 0
messageSend objc_msgSend_stret, 8, 16, 1

.globl softmetal_zero
.hidden softmetal_zero
.type softmetal_zero, @function
softmetal_zero:
  .cfi_startproc
  xor %eax, %eax
  xor %edx, %edx
  xorps %xmm0, %xmm0
  xorps %xmm1, %xmm1
  ret
  .cfi_endproc
.globl softmetal_zero_struct
.hidden softmetal_zero_struct
.type softmetal_zero_struct, @function
softmetal_zero_struct:
  .cfi_startproc
  mov %rdi, %rax
  ret
  .cfi_endproc
)");

#elif defined(__aarch64__)

asm(R"(
.macro eachPair op
  \op x0, x1, [sp, #16]
  \op x2, x3, [sp, #32]
  \op x4, x5, [sp, #48]
  \op x6, x7, [sp, #64]
  \op q0, q1, [sp, #96]
  \op q2, q3, [sp, #128]
  \op q4, q5, [sp, #160]
  \op q6, q7, [sp, #192]
.endm
.text
.globl objc_msgSend
.type objc_msgSend, %function
objc_msgSend:
  .cfi_startproc
  stp x29, x30, [sp, #-224]!
  .cfi_def_cfa_offset 224
  .cfi_offset x29, -224
  .cfi_offset x30, -216
  mov x29, sp
  eachPair stp
  str x8, [sp, #80]
  mov w2, #0
  bl softmetal_lookup
  mov x16, x0
  eachPair ldp
  ldr x8, [sp, #80]
  ldp x29, x30, [sp], #224
  .cfi_def_cfa_offset 0
  .cfi_restore x29
  .cfi_restore x30
  br x16
  .cfi_endproc
  .size objc_msgSend, . - objc_msgSend
.globl softmetal_zero
.hidden softmetal_zero
.type softmetal_zero, %function
softmetal_zero:
  .cfi_startproc
  mov x0, #0
  mov x1, #0
  .irp i, 0, 1, 2, 3
  movi v\i\().16b, #0
  .endr
  ret
  .cfi_endproc
.globl softmetal_zero_struct
.hidden softmetal_zero_struct
.set softmetal_zero_struct, softmetal_zero
)");

#else
#error "SoftMetal knows x86-64 and arm64"
#endif
