// shader-check compile: constexpr if
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

template <uint n>
inline uint chosen() {
  if constexpr (n > 1) {
    return 2;
  }
  return 1;
}

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = float(chosen<2>());
}
export_kernel(k)
