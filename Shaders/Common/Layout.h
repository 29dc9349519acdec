// Asserts, on the host and in the shader, that both see the same struct. None has padding, so that the size of all its
// members settles their offsets.
#pragma once
#ifdef __METAL_VERSION__
#include <metal_stdlib>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#define MNK_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type " has another size than its other side")
