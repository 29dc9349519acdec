// Asserts, on the host and in the shader, that both see the same struct.
#pragma once
#ifdef __METAL_VERSION__
#include <metal_stdlib>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#define MNK_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type " has another size than its other side")
#define MNK_OFFSET(type, field, bytes) \
  static_assert(__builtin_offsetof(type, field) == (bytes), #type "::" #field " lies elsewhere on its other side")
