// shader-check lint: is exported twice
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

template <typename T>
kernel void k(device T* o [[buffer(0)]]) {
  o[0] = T(1.0f);
}
instantiate_kernel("k", k, float)
instantiate_kernel("k", k, half)
