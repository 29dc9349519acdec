// The C API to Metal's own objects, for apps on Apple's systems. They are passed as Objective-C objects (id<MTLDevice>,
// id<MTLBuffer>, …, bridged to void*) and retained for as long as they are needed; those that are returned are
// borrowed. Elsewhere every call fails with MNK_UNSUPPORTED, or returns NULL.
#ifndef MNK_METAL_H
#define MNK_METAL_H

#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

typedef struct mnk_metal_options {
  void* MNK_NULLABLE device;              // id<MTLDevice>; NULL: the queue's device, or the system's default
  void* MNK_NULLABLE queue;               // id<MTLCommandQueue>; NULL: the device's own
  const char* MNK_NULLABLE library_path;  // compiled kernels of this package; NULL: they are searched for
  bool describes_dispatches;              // a debug group for each dispatch, for captures
  bool uses_embedded_text;                // kernels are compiled from the embedded text, whatever else there is
} mnk_metal_options;
mnk_device* MNK_NULLABLE mnk_device_make_metal(const mnk_metal_options* options, mnk_error_out error);
void* MNK_NULLABLE mnk_device_metal_device(const mnk_device* device);  // id<MTLDevice>
void* MNK_NULLABLE mnk_device_metal_queue(const mnk_device* device);   // id<MTLCommandQueue>

// A tensor over the app's id<MTLBuffer>, without a copy. It starts `byte_offset` bytes into the buffer.
mnk_tensor* MNK_NULLABLE mnk_tensor_make_over_metal_buffer(mnk_device* device, void* buffer, mnk_dtype dtype,
                                                           const uint64_t* MNK_NULLABLE shape, size_t rank,
                                                           uint64_t byte_offset, mnk_error_out error);
// The id<MTLBuffer> under a tensor, which starts mnk_tensor_byte_offset bytes into it. Its contents are not checked:
// using them does not wait for submitted work.
void* MNK_NULLABLE mnk_tensor_metal_buffer(const mnk_tensor* tensor);

// Records into an id<MTLCommandBuffer> that the app commits itself. mnk_encoder_commit encodes everything into it, as
// one compute encoder, while no other encoder of it is open; before that the command buffer is untouched. The
// completion is done when the command buffer is, and its time is that of all the command buffer; one that is released
// without a commit fails. Until the app has committed, mnk_completion_wait does not return, and reading or writing
// what the work touches fails with MNK_WOULD_DEADLOCK.
mnk_encoder* MNK_NULLABLE mnk_encoder_make_into_metal(mnk_device* device, void* command_buffer,
                                                      const char* MNK_NULLABLE label, mnk_error_out error);

MNK_HEADER_END

#endif
