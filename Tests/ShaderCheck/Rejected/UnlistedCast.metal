// shader-check list: as_type is not on the list for these types
// host accepts
#include "../../../Shaders/Lib/Words.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = float(as_type<int>(o[t]));
}
export_kernel(k)
