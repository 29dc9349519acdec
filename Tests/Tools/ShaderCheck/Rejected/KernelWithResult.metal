// shader-check lint: returns something other than void
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

template <typename T>
kernel T k(device T* o [[buffer(0)]]) {
  return o[0];
}
instantiate_kernel("k_f32", k, float)
