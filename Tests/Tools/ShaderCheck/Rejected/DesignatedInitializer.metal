// shader-check compile: designated initializers are a C++20 extension
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

struct Pair {
  float a;
  float b;
};

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  const Pair pair{.a = 1.0f, .b = 2.0f};
  o[t] = pair.a + pair.b;
}
export_kernel(k)
