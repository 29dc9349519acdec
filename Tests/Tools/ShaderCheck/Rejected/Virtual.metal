// shader-check compile: virtual functions are not supported
// shader-check lint: member function area
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

struct Shape {
  virtual float area() { return 1.0f; }
};

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  Shape s;
  o[t] = s.area();
}
export_kernel(k)
