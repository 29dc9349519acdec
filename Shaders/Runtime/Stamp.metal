// Empty kernels whose names describe the library. One name is a hash of the source, so that a device can reject a
// library that does not match the calling code. The other exists only if the library was compiled for devices with
// device-scope fences.
#include "../Common/MetalCompat.h"
#include "Stamp.h"

template <typename Unused>
kernel void shaderStamp() {}

instantiate_kernel(MNK_SHADER_STAMP, shaderStamp, uint)

#if MNK_HAS_DEVICE_FENCES
// Contains the fence that other kernels rely on. This file is compiled first, so a compiler without the fence fails
// here.
kernel void ordersThreadgroups() {
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
}
export_kernel(ordersThreadgroups)
#endif
