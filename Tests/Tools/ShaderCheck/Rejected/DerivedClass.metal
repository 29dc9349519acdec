// shader-check lint: derived class
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

struct Pair {
  float a;
  float b;
};

struct Triple : Pair {
  float c;
};

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  Triple p;
  p.c = 1.0f;
  o[t] = p.c;
}
export_kernel(k)
