// shader-check compile: decomposition declarations
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

struct Pair {
  float a;
  float b;
};

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  const Pair p = {1.0f, 2.0f};
  auto [a, b] = p;
  o[t] = a + b;
}
export_kernel(k)
