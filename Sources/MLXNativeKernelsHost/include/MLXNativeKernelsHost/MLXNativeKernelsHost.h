// The Host device, a separate product: it runs the kernels on the processor, for tests and for systems without a GPU.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/// Makes the Host device available to MLXNativeKernels: `KernelDevice.host(_:)`, `mnk_device_make_host` and
/// `MNK_DEVICE=host` fail on Apple platforms until this is called. Elsewhere the device is always available, and the
/// call changes nothing. Any thread may call it, any number of times.
void mnk_register_host_device(void)
#if __has_attribute(swift_name)
    __attribute__((swift_name("registerHostDevice()")))
#endif
    ;

#ifdef __cplusplus
}
#endif
