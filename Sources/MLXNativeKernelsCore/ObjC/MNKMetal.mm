#ifdef __APPLE__
#include "MLXNativeKernels/mnk_metal.h"
#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@implementation MNKDevice (MNKMetal)

+ (instancetype)deviceWithMTLDevice:(id<MTLDevice>)device error:(NSError **)error {
  return [self deviceWithMTLDevice:device queue:nil libraryURL:nil describesDispatches:NO error:error];
}

+ (instancetype)deviceWithMTLDevice:(id<MTLDevice>)device
                              queue:(id<MTLCommandQueue>)queue
                         libraryURL:(NSURL *)libraryURL
                describesDispatches:(BOOL)describesDispatches
                              error:(NSError **)error {
  return [self deviceWithMTLDevice:device
                             queue:queue
                        libraryURL:libraryURL
               describesDispatches:describesDispatches
                  usesEmbeddedText:NO
                             error:error];
}

+ (instancetype)deviceWithMTLDevice:(id<MTLDevice>)device
                              queue:(id<MTLCommandQueue>)queue
                         libraryURL:(NSURL *)libraryURL
                describesDispatches:(BOOL)describesDispatches
                   usesEmbeddedText:(BOOL)usesEmbeddedText
                              error:(NSError **)error {
  return objc::make<MNKDevice>(error, "Metal device", [&](Reading &reading) {
    reading.needed(device, "the device");
    const mnk_metal_options options{.device = (__bridge void *)device,
                                    .queue = (__bridge void *)queue,
                                    .library_path = libraryURL ? reading.path(libraryURL) : nullptr,
                                    .describes_dispatches = describesDispatches != NO,
                                    .uses_embedded_text = usesEmbeddedText != NO};
    return objc::call(reading, mnk_device_make_metal, &options);
  });
}

- (id<MTLDevice>)mtlDevice {
  return (__bridge id<MTLDevice>)mnk_device_metal_device(_handle.get());
}
- (id<MTLCommandQueue>)mtlCommandQueue {
  return (__bridge id<MTLCommandQueue>)mnk_device_metal_queue(_handle.get());
}

- (MNKCommandEncoder *)commandEncoderIntoCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                                                 label:(NSString *)label
                                                 error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKCommandEncoder *> {
    Reading reading("MNKCommandEncoder");
    reading.needed(commandBuffer, "the command buffer");
    const auto handle = objc::call(reading, mnk_encoder_make_into_metal, self->_handle.get(),
                                   (__bridge void *)commandBuffer, reading.text(label, "the label"));
    if (!handle) return handle.error();
    return [[MNKCommandEncoder alloc] initWithDevice:self handle:*handle];
  });
}

@end

@implementation MNKTensor (MNKMetal)

+ (instancetype)tensorWrappingMTLBuffer:(id<MTLBuffer>)buffer
                                 offset:(NSUInteger)offset
                                  shape:(NSArray<NSNumber *> *)shape
                            elementType:(MNKElementType)elementType
                                 device:(MNKDevice *)device
                                  error:(NSError **)error {
  return objc::make<MNKTensor>(error, "Tensor", [&](Reading &reading) {
    reading.needed(buffer, "the buffer");
    mnk_device *target = objc::handleOf(reading, device);
    const Shape extents = reading.shape(shape);
    const auto type = objc::enumFrom(reading, elementType, "element type");
    return objc::call(reading, mnk_tensor_make_over_metal_buffer, target, (__bridge void *)buffer, type,
                      extents.extents().data(), extents.extents().size(), offset);
  });
}

- (id<MTLBuffer>)mtlBuffer {
  return (__bridge id<MTLBuffer>)mnk_tensor_metal_buffer(_handle.get());
}

@end
#endif
