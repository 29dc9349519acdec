// shader-check lint: kernel k is not exported
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

template <typename T>
kernel void k(device T* o [[buffer(0)]]) {
  o[0] = T(1.0f);
}
