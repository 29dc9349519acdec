// A kernel that does nothing. Its name says which text the library was made from, so that a device can refuse a library
// that is older or newer than the code that calls it.
#include "../Lib/Words.h"
#include "../Types/Stamp.h"

template <typename Unused>
kernel void shaderStamp() {}

instantiate_kernel(MNK_SHADER_STAMP, shaderStamp, uint)
