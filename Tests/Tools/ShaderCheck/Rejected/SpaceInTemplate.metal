// shader-check compile: cannot initialize a variable of type '__local half
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

template <typename T>
kernel void k(device T* o [[buffer(0)]]) {
  threadgroup T* s = o;
  s[0] = T(1.0f);
}
instantiate_kernel("k_f16", k, half)
