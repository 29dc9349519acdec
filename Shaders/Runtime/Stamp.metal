// Kernels that do nothing, and whose names say something of the library. One names the text that it was made from, so
// that a device can refuse a library that is older or newer than the code that calls it. The other is there where it
// was compiled for devices that order memory between threadgroups.
#include "../Common/MetalCompat.h"
#include "Stamp.h"

template <typename Unused>
kernel void shaderStamp() {}

instantiate_kernel(MNK_SHADER_STAMP, shaderStamp, uint)

#if MNK_HAS_DEVICE_FENCES
// With the fence that others rely on: a compiler that lacks it refuses this file, which is compiled first.
kernel void ordersThreadgroups() {
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
}
export_kernel(ordersThreadgroups)
#endif
