// shader-check compile: class template argument deduction
// shader-check lint: member function Box
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

template <typename T>
struct Box {
  T value;
  Box(T v) : value(v) {}
};

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  Box b(1.0f);
  o[t] = b.value;
}
export_kernel(k)
