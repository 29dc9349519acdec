// shader-check lint: is no kernel of this text
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

inline void k(device float* o) {
  o[0] = 1.0f;
}
export_kernel(k)
