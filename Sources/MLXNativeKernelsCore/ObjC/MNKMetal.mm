#ifdef __APPLE__
#include "MLXNativeKernels/MetalDevice.hpp"
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
  return objc::make(error, [&]() -> Result<MNKDevice *> {
    Reading reading("Metal device");
    if (!reading.needed(device, "the device")) return reading.error();
    metal::Options options{.device = (__bridge MTL::Device *)device,
                           .queue = (__bridge MTL::CommandQueue *)queue,
                           .usesEmbeddedText = usesEmbeddedText != NO,
                           .describesDispatches = describesDispatches != NO};
    if (libraryURL) options.libraryPath = reading.take(objc::pathFrom(libraryURL, "Metal device"));
    if (reading.failed()) return reading.error();
    auto result = metal::makeDevice(options);
    if (!result) return result.error();
    return [[MNKDevice alloc] initWithCore:*result];
  });
}

- (id<MTLDevice>)mtlDevice {
  return (__bridge id<MTLDevice>)metal::nativeDevice(_core);
}
- (id<MTLCommandQueue>)mtlCommandQueue {
  return (__bridge id<MTLCommandQueue>)metal::nativeQueue(_core);
}

- (MNKCommandEncoder *)commandEncoderIntoCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                                                 label:(NSString *)label
                                                 error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKCommandEncoder *> {
    Reading reading("MNKCommandEncoder");
    if (!reading.needed(commandBuffer, "the command buffer")) return reading.error();
    auto submission =
        metal::makeSubmission(self->_core, (__bridge MTL::CommandBuffer *)commandBuffer, objc::textFrom(label));
    if (!submission) return submission.error();
    std::unique_ptr<mnk_encoder> handle(new mnk_encoder{CommandEncoder(self->_core, std::move(*submission))});
    return [[MNKCommandEncoder alloc] initWithDevice:self handle:std::move(handle)];
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
  return objc::make(error, [&]() -> Result<MNKTensor *> {
    Reading reading("Tensor");
    reading.needed(buffer, "the buffer");
    const auto target = reading.take(objc::coreOf(device));
    const Shape extents = reading.shape(shape);
    const DType type = objc::read(reading, elementType);
    if (reading.failed()) return reading.error();
    auto wrapped = metal::wrapBuffer(target, (__bridge MTL::Buffer *)buffer);
    if (!wrapped) return wrapped.error();
    auto tensor = Tensor::over(*wrapped, type, extents, offset);
    if (!tensor) return tensor.error();
    return [[MNKTensor alloc] initWithCore:*tensor];
  });
}

- (id<MTLBuffer>)mtlBuffer {
  return (__bridge id<MTLBuffer>)metal::nativeBuffer(_handle.tensor.buffer());
}

@end
#endif
