#include "CAPI/Handles.hpp"
#include "MLXNativeKernels/mnk_metal.h"
#include "Support/Errors.hpp"

using namespace mnk;

mnk_device* mnk_device_make_metal(const mnk_metal_options* options, mnk_error_out error) {
  return c::make<mnk_device>(error, {}, [&]() -> Result<mnk_device*> {
    MNK_TRY(auto input, c::descriptor("mnk_metal_options", options));
    return c::handleFor(metal::makeDevice({.device = static_cast<MTL::Device*>(input.device),
                                           .queue = static_cast<MTL::CommandQueue*>(input.queue),
                                           .libraryPath = input.library_path ? input.library_path : "",
                                           .usesEmbeddedText = input.uses_embedded_text,
                                           .describesDispatches = input.describes_dispatches}));
  });
}

void* mnk_device_metal_device(const mnk_device* device) {
  return device ? metal::nativeDevice(device->device) : nullptr;
}
void* mnk_device_metal_queue(const mnk_device* device) {
  return device ? metal::nativeQueue(device->device) : nullptr;
}

mnk_tensor* mnk_tensor_make_over_metal_buffer(mnk_device* device, void* buffer, mnk_dtype dtype, const uint64_t* shape,
                                              size_t rank, uint64_t byte_offset, mnk_error_out error) {
  return c::make<mnk_tensor>(error, {{device, "device"}, {buffer, "buffer"}}, [&] {
    auto wrapped = metal::wrapBuffer(device->device, static_cast<MTL::Buffer*>(buffer));
    return c::tensorOver(std::move(wrapped), dtype, shape, rank, byte_offset);
  });
}

void* mnk_tensor_metal_buffer(const mnk_tensor* tensor) {
  return tensor ? metal::nativeBuffer(tensor->tensor.buffer()) : nullptr;
}

mnk_encoder* mnk_encoder_make_into_metal(mnk_device* device, void* command_buffer, const char* label,
                                         mnk_error_out error) {
  return c::make<mnk_encoder>(
      error, {{device, "device"}, {command_buffer, "command_buffer"}}, [&]() -> Result<mnk_encoder*> {
        MNK_TRY(auto submission, metal::makeSubmission(device->device, static_cast<MTL::CommandBuffer*>(command_buffer),
                                                       label ? label : ""));
        return new mnk_encoder{CommandEncoder(device->device, std::move(submission))};
      });
}
