// shader-check compile: redefinition of 'FunctionConstant<0>'
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

pipeline_constant(bool, hasMask, 0);
pipeline_constant(bool, hasWindow, 0);

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = hasMask || hasWindow ? 1.0f : 0.0f;
}
export_kernel(k)
