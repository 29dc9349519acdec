// shader-check lint: member function sum
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

struct Pair {
  float a;
  float b;
  float sum() const { return a + b; }
};

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  const Pair p = {1.0f, 2.0f};
  o[t] = p.sum();
}
export_kernel(k)
